"""Hardening flags of the release binary."""
import os
import subprocess
import unittest

from support import BINARY


def readelf(*arguments):
    return subprocess.run(["readelf", "--wide", *arguments, BINARY], capture_output=True, text=True,
                          check=True, timeout=120).stdout


@unittest.skipIf(os.environ.get("SHMEMCTL_SANITIZE"), "a sanitizer takes the place of these options")
class Hardening(unittest.TestCase):
    def test_its_addresses_are_random(self):
        self.assertIn("DYN (Position-Independent Executable file)", readelf("--file-header"))

    def test_relocations_are_done_at_start_and_read_only_then(self):
        self.assertIn("GNU_RELRO", readelf("--program-headers"))
        self.assertRegex(readelf("--dynamic"), r"\(FLAGS_1\).*\bNOW\b")

    def test_the_stack_cannot_be_executed(self):
        stack = [line for line in readelf("--program-headers").splitlines() if "GNU_STACK" in line]
        self.assertEqual(len(stack), 1)
        self.assertNotIn("E", stack[0].split()[-2])

    def test_frames_have_canaries_and_copies_are_checked(self):
        symbols = readelf("--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, r"__(memcpy|snprintf|read|memset)_chk")


if __name__ == "__main__":
    unittest.main()
