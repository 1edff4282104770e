"""PEs of two versions of the binary refuse one another, and say so."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import BINARY, SOURCE, clean_environment, error_lines
from test_uid import free_port

sys.path.insert(0, str(SOURCE / "tests" / "support"))
from other_version import NoSymbol, make_other_version  # noqa: E402


class OtherVersion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.other = make_other_version(BINARY, folder.name)

    def job(self, *binaries):
        """[(exit code, stderr)] of PEs of these binaries."""
        port = free_port()
        processes = [subprocess.Popen(
            [binary, "bringup", "--timeout", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=clean_environment(
                SHMEMCTL_BOOTSTRAP="uid", SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=f"127.0.0.1:{port}",
                SHMEMCTL_BOOTSTRAP_UID_SECRET="open sesame", SHMEMCTL_BOOTSTRAP_UID_RANK=str(rank),
                SHMEMCTL_BOOTSTRAP_UID_SIZE=str(len(binaries)), SHMEMCTL_SYMMETRIC_SIZE="16M"))
            for rank, binary in enumerate(binaries)]
        return [(process.returncode, err) for process in processes
                for _, err in [process.communicate(timeout=300)]]

    def test_the_other_one_is_whole(self):
        for code, err in self.job(self.other, self.other):
            self.assertEqual(code, 0, err)

    def test_each_names_the_first_pe_of_another_version(self):
        ends = self.job(BINARY, BINARY, self.other)
        for (code, err), named in zip(ends, ("PE 2", "PE 2", "PE 0")):
            self.assertEqual(code, 3, err)
            self.assertEqual(len(error_lines(err)), 1, err)
            self.assertRegex(err, rf"{named}[^\n]*: it runs another version of shmemctl than this PE")
            self.assertIn("shmemctl: fix: run the same version of shmemctl on all hosts\n", err)

    def test_what_is_no_such_binary_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_text("no program")
            with self.assertRaises(NoSymbol):
                make_other_version(text, folder)


if __name__ == "__main__":
    unittest.main()
