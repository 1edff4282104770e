"""doctor's group kernel-log: a file in place of the kernel's own log."""
import pathlib
import subprocess
import tempfile
import unittest

from support import BINARY, CliTest, report_of, run

XID = "[  100.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


class KernelLog(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "dmesg.txt"

    def test_an_error_is_a_finding_and_the_exit_code_1(self):
        self.file.write_text("[    0.0] Linux version 6.8.0-45-generic\n" + XID * 3)
        code, document = report_of("doctor", "--only", "kernel-log", "--kernel-log", self.file)
        found = {finding["id"]: finding for finding in document["findings"]}
        self.assertEqual(set(found), {"kernel-log-xid"})
        self.assertEqual(found["kernel-log-xid"]["severity"], "error")
        self.assertIn("xid-79 on", found["kernel-log-xid"]["message"])
        self.assertIn("3 times", found["kernel-log-xid"]["message"])
        self.assertEqual(code, 1)
        self.assertEqual(document["exit_code"], 1)

    def test_standard_input(self):
        done = subprocess.run([BINARY, "doctor", "--only", "kernel-log-xid", "--kernel-log", "-"], input=XID,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("kernel-log-xid", done.stdout)

    def test_a_log_without_trouble(self):
        self.file.write_text("[    0.0] Linux version 6.8.0-45-generic\n")
        self.assertEqual(run("doctor", "--only", "kernel-log", "--kernel-log", self.file)[0], 0)

    def test_bytes_of_any_kind(self):
        self.file.write_bytes(bytes(range(256)) * 200 + b"\n\xff NVRM: Xid (\x1b[31m): 79, \n")
        code, out, err = run("doctor", "--only", "kernel-log", "--kernel-log", self.file)
        self.assertIn(code, (0, 1), err)
        self.assertNotIn("\x1b[31m", out)

    def test_a_file_that_is_not_there(self):
        code, _, err = run("doctor", "--only", "kernel-log", "--kernel-log", self.file)
        self.assertEqual(code, 2)
        self.assertIn("dmesg.txt", err)


if __name__ == "__main__":
    unittest.main()
