"""What scripts/build.sh shows of a build: how far it is, what fails, and nothing of what is up to date."""
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import unittest

from support import SOURCE

RULES = """rule good
  command = touch $out
  description = Building CXX object $out
rule bad
  command = echo "x.cpp:1: error: wrong"; exit 1
  description = Building CXX object $out
"""
CALL = "set -euo pipefail; . scripts/progress.sh; ninja_with_progress -C \"$@\""


@unittest.skipUnless(shutil.which("ninja"), "no ninja")
class BuildProgress(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        steps = [f"step{i}" for i in range(40)]
        (self.folder / "build.ninja").write_text(
            RULES + "".join(f"build {step}: good\n" for step in steps) + "build all: phony " + " ".join(steps) +
            "\nbuild broken: bad\ndefault all\n")

    def command(self, *arguments):
        return ["bash", "-c", CALL, "build", str(self.folder), *arguments]

    def build(self, *arguments):
        done = subprocess.run(self.command(*arguments), cwd=SOURCE, capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_in_a_file_every_tenth_is_a_line(self):
        code, err = self.build()
        self.assertEqual(code, 0, err)
        lines = err.splitlines()
        self.assertEqual(len(lines), 10, err)
        self.assertRegex(lines[-1], r"^scripts: 40 of 40, \d+ s$")
        self.assertEqual(self.build(), (0, ""), "nothing is left to do")

    def test_a_failure_is_shown_whole(self):
        code, err = self.build("broken")
        self.assertEqual(code, 1)
        self.assertIn("x.cpp:1: error: wrong\n", err)

    def test_on_a_terminal_it_is_one_line_that_disappears(self):
        seen = b""
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(SOURCE)
            os.execvpe("bash", self.command(), dict(os.environ, TERM="xterm"))
        try:
            while data := os.read(master, 4096):
                seen += data
        except OSError:
            pass  # the process has ended
        os.close(master)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, seen)
        self.assertNotIn(b"\n", seen)
        self.assertIn(b"\rscripts: 40 of 40, ", seen)
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen)


if __name__ == "__main__":
    unittest.main()
