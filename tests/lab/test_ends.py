"""How a lab ends when its command does not."""
import os
import pty
import select
import subprocess
import time
import unittest

import lab_support

PATIENCE_S = 600


class Ends(unittest.TestCase):
    def test_a_deadline_names_the_machine_and_what_it_printed(self):
        done = subprocess.run(
            [lab_support.LAB / "run", "--hcas", "0", "--timeout", "6", "--", "echo halfway; sleep 1000"],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 124)
        self.assertEqual(done.stdout, "halfway\n")
        self.assertRegex(done.stderr, r"\A(?:lab: waiting [^\n]*\n)?lab: error: lab0 still ran after 6 s [^\n]*halfway[^\n]*\n"
                                      r"lab: fix: [^\n]+\n\Z")

    def test_a_machine_that_dies_leaves_the_other_running(self):
        result = lab_support.run_lab(
            "--hcas", 0, "--machines", 2, "--timeout", 300,
            "--peer", "echo o >/proc/sysrq-trigger; sleep 100", "--",
            # Its own end of the wire stays; only nobody answers any more.
            "for i in $(seq 600); do ip neigh flush dev eth0; "
            "timeout 1 bash -c '</dev/tcp/$LAB_PEER/1' 2>&1 | grep -q refused || exit 4; done")
        self.assertEqual(result.exit_codes, [4, None])
        self.assertEqual(result.exit_code, 4)
        self.assertRegex(str(result.error), r"\Alab1 ended without an exit code")

    def test_a_shell(self):
        terminal, end = pty.openpty()
        shell = subprocess.Popen([lab_support.LAB / "shell", "--hcas", "0"], stdin=end, stdout=end,
                                 stderr=end, start_new_session=True)
        os.close(end)
        self.addCleanup(os.close, terminal)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        seen = self.read_until(terminal, b"# ")
        os.write(terminal, b"echo $((40 + 2)) $(hostname); exit 5\n")
        seen = self.read_until(terminal, b"42 lab0")
        self.assertIn(b"42 lab0", seen)
        self.drain(terminal)
        self.assertEqual(shell.wait(timeout=PATIENCE_S), 5)

    def read_until(self, terminal, words):
        seen = b""
        deadline = time.monotonic() + PATIENCE_S
        while words not in seen:
            ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
            self.assertTrue(ready, seen)
            seen += os.read(terminal, 4096)
        return seen

    @staticmethod
    def drain(terminal):
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:  # the other end is closed
            pass


if __name__ == "__main__":
    lab_support.main()
