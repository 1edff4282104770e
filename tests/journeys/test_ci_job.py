"""The CI user: every command of docs/tutorials/ci.md, in the order of the page, and what the page shows of its output.

What was measured here has other numbers than on the page: there numbers are compared by their places. What is
computed from recorded reports is compared to the letter, but for the blanks that align columns.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from page import commands_of, difference, masked, unaligned  # noqa: E402  pylint: disable=wrong-import-position
from support import BINARY, SOURCE, clean_environment  # noqa: E402  pylint: disable=wrong-import-position

PAGE = SOURCE / "docs" / "tutorials" / "ci.md"
RECORDED = "tests/data/"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Journey(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin" / "shmemctl").symlink_to(BINARY)
        (cls.folder / "tests").symlink_to(SOURCE / "tests")
        cls.environment = clean_environment(PATH=f"{cls.folder / 'bin'}:{os.environ['PATH']}")

    def bash(self, command, timeout=600):
        return subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=timeout, check=False)

    def in_terminal(self, command, columns=80, rows=24, timeout=120):
        """(exit code, output) in a terminal of that size."""
        environment = {**self.environment, "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""}
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("bash", ["bash", "-c", f"stty cols {columns} rows {rows}; {command}"], environment)
        written, end = b"", time.monotonic() + timeout
        while time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    part = os.read(terminal, 65536)
                except OSError:  # the other side is closed
                    break
                if not part:
                    break
                written += part
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code, written.decode().replace("\r\n", "\n")


class TutorialOfCi(Journey):
    def test_the_page_shows_what_the_commands_write(self):
        commands = commands_of(PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(commands), 10)
        last = None
        for command, shown in commands:
            with self.subTest(command=command):
                if command == "echo $?":
                    self.assertEqual(shown, [str(last)])
                    continue
                done = self.bash(command)
                last = done.returncode
                self.assertIn(last, (0, 1), done.stderr)
                if shown is None:
                    self.assertEqual(last, 0, done.stderr)
                    continue
                written = (done.stdout + done.stderr).splitlines()
                self.assertEqual(difference(shown, written, unaligned if RECORDED in command else masked), "", done.stdout)
                self.assertNotIn("\x1b", done.stdout)

    def test_what_a_ci_system_reads_is_well_formed(self):
        self.bash("shmemctl report diff tests/data/report/gate/base tests/data/report/gate/new --json d.json")
        junit = self.bash("shmemctl report junit d.json").stdout
        names = re.findall(r'<testcase classname="put" name="([^"]*)"', junit)
        self.assertEqual(len(names), 4)
        for name in names:
            self.assertNotRegex(name, "batch|window")
        if shutil.which("xmllint"):
            done = subprocess.run(["xmllint", "--noout", "-"], input=junit, text=True, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        # A measured report has measured times.
        self.bash("shmemctl run -n 2 bench put-pingpong --quick --symmetric-size 16M --json t.json")
        times = [float(time_s) for time_s in re.findall(r'<testcase [^>]*time="([0-9.]+)"',
                                                        self.bash("shmemctl report junit t.json").stdout)]
        self.assertTrue(times)
        self.assertGreater(min(times), 0)

    def test_in_a_terminal_the_words_are_the_same(self):
        """80 columns, in colour: lines are broken, tables are not."""
        for command in ("report diff tests/data/report/gate/base tests/data/report/gate/new",
                        "report check tests/data/report/gate/hotspots.json --require 'hotspots.utilisation<=0.8'"):
            with self.subTest(command=command):
                plain = self.bash("shmemctl " + command)
                code, shown = self.in_terminal("shmemctl " + command)
                self.assertEqual(code, plain.returncode)
                self.assertIn("\x1b[", shown)
                self.assertEqual(ESCAPE.sub("", shown).split(), plain.stdout.split())

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_through_a_launcher_into_a_file(self):
        done = self.bash("mpirun -n 2 $(test \"$(id -u)\" = 0 && mpirun --version | grep -q 'Open MPI' && "
                         "echo --allow-run-as-root) shmemctl bench put-pingpong --quick --symmetric-size 16M "
                         "--json m.json > m.txt 2>&1")
        text = (self.folder / "m.txt").read_text(encoding="utf-8")
        self.assertEqual(done.returncode, 0, text)
        self.assertNotIn("\x1b", text)
        self.assertEqual(json.loads((self.folder / "m.json").read_text(encoding="utf-8"))["job"]["pes"], 2)
        self.assertEqual(self.bash("shmemctl report check m.json --fail-on error").returncode, 0)


if __name__ == "__main__":
    unittest.main()
