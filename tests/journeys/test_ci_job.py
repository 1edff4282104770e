"""The CI user: every command of docs/tutorials/ci.md, in the order of the page, and what the page shows of its output.

A line of the page that is only "…" stands for any lines, and one that ends with "…" for any line that begins so.
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
from support import BINARY, SOURCE, clean_environment  # noqa: E402  pylint: disable=wrong-import-position

PAGE = SOURCE / "docs" / "tutorials" / "ci.md"
RECORDED = "tests/data/"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def commands_of(page):
    """(command, the lines that the page shows of its output) of all blocks; of `sh` blocks nothing is shown."""
    found = []
    for kind, body in re.findall(r"^```(console|sh)\n(.*?)^```$", page, re.M | re.S):
        if kind == "sh":
            found.append((body, None))
            continue
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            lines = part.splitlines()
            command = [lines.pop(0)]
            while command[-1].endswith("\\"):
                command.append(lines.pop(0))
            found.append(("\n".join(command), lines))
    return found


def unaligned(line):
    return re.sub(r" +", " ", line).strip()


def masked(line):
    """Without what another run changes."""
    return unaligned(re.sub(r"\d[\d.]*(?:e[-+]\d+)?", "#", line))


def difference(shown, written, exact):
    """The first line that differs; "" if the output is as it is shown."""
    form = unaligned if exact else masked
    at, skipping = 0, False
    for line in shown:
        if line.strip() == "…":
            skipping = True
            continue
        begins = line.endswith("…")
        wanted = form(line[:-1] if begins else line)

        def fits(text, wanted=wanted, begins=begins):
            return form(text).startswith(wanted) if begins else form(text) == wanted
        end = len(written) if skipping else at + 1
        found = next((i for i in range(at, min(end, len(written))) if fits(written[i])), None)
        if found is None:
            return f"shown: {line!r}, written: {written[at:at + 3]}"
        at, skipping = found + 1, False
    return "" if skipping or at == len(written) else f"not shown: {written[at:at + 3]}"


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
                self.assertEqual(difference(shown, written, RECORDED in command), "", done.stdout)
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


class TheseTests(unittest.TestCase):
    """They can fail."""

    def test_a_line_that_differs_is_found(self):
        self.assertEqual(difference(["a 1", "…", "b 2…"], ["a 1", "x", "y", "b 23"], True), "")
        self.assertEqual(difference(["a  1 us"], ["a 22.5 us"], False), "")
        self.assertNotEqual(difference(["a 1"], ["a 2"], True), "")
        self.assertNotEqual(difference(["a 1"], ["b 1"], False), "")
        self.assertNotEqual(difference(["a"], ["a", "b"], True), "")
        self.assertNotEqual(difference(["a", "b"], ["a"], True), "")
        self.assertNotEqual(difference(["…", "b"], ["a"], True), "")

    def test_commands_of_a_page(self):
        page = "x\n```console\n$ a \\\nb\nout\n$ c\n```\n```sh\nd\n```\n"
        self.assertEqual(commands_of(page), [("a \\\nb", ["out"]), ("c", []), ("d\n", None)])


if __name__ == "__main__":
    unittest.main()
