"""A performance engineer with docs/tutorials/sweep.md: how fast is it, is that normal, and what was measured? Every
command of the page through pipes, on a terminal of 80 x 24, under mpirun and under srun."""
import ctypes
import json
import re
import unittest

from journey import Journey, has_open_mpi, needs_open_mpi
from page import console_commands, measured_difference
from one_node_slurm import OneNodeSlurm, why_not
from support import SOURCE, error_lines

PAGE = SOURCE / "docs" / "tutorials" / "sweep.md"
STATUS = re.compile(r"^shmemctl: \d+ s, ", re.MULTILINE)


def has_libfabric():
    try:
        ctypes.CDLL("libfabric.so.1")
    except OSError:
        return False
    return True


class Sweep(Journey):
    def commands(self, word, count):
        found = console_commands(PAGE, word)
        self.assertEqual(len(found), count, found)
        return [(command, shown) for command, shown in found if has_libfabric() or "libfabric" not in command]

    def test_cases_that_the_page_names_are_listed(self):
        listed = re.findall(r"^([a-z-]+)  ", self.bash("shmemctl bench --list").stdout, re.MULTILINE)
        named = {"put", "put-latency", "put-pingpong", "get"}
        self.assertLessEqual(named, set(listed))
        text = PAGE.read_text(encoding="utf-8")
        for name in named:
            self.assertIn(name, text)

    def test_through_pipes_it_writes_what_the_page_shows(self):
        for command, shown in self.commands("shmemctl run", 2):
            with self.subTest(command=command):
                self.assert_piped(command, shown)

    def test_on_a_terminal_it_shows_the_same(self):
        for command, shown in self.commands("shmemctl run", 2)[:1]:
            with self.subTest(command=command):
                terminal = self.assert_on_terminal(command, shown)
                self.assertIn("\x1b[", terminal.raw)
                self.assertFalse(STATUS.search(terminal.screen.text()), terminal.screen.text())
                # What was measured, and whether it was right, is on the screen when the prompt returns.
                self.assertRegex(terminal.screen.visible(), r"\d+ results \(\d+ passed\)\.")

    def test_rows_appear_as_they_are_measured(self):
        terminal = self.terminal("shmemctl run -n 2 bench put --sizes 8,64 -D 1 --symmetric-size 64M")
        self.assertEqual(terminal.code, 0, terminal.screen.text())
        # "size" is followed by a row of 8 bytes, and not yet by one of 64.
        first = re.compile(r"  size  window .*\n(?:.*verified\n)?     8 ")
        self.assertTrue(any(first.search(moment) and not re.search(r"^    64 ", moment, re.MULTILINE)
                            for moment in terminal.moments), terminal.moments[-3:])
        self.assertRegex(terminal.screen.text(), r"(?m)^    64 ")

    @needs_open_mpi
    def test_under_mpirun_it_writes_what_the_page_shows(self):
        for command, shown in self.commands("mpirun", 1):
            self.assert_piped(command, shown)
            report = json.loads((self.folder / "sweep.json").read_text(encoding="utf-8"))
            self.assertEqual((report["job"]["pes"], report["job"]["launcher"]), (4, "mpirun"))
            # The page's last step. Nothing is worse than itself.
            done = self.bash("cp sweep.json tomorrow.json && shmemctl report diff sweep.json tomorrow.json")
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertRegex(done.stdout, r"(?m)^(Nothing is worse; .* decided|Nothing is decided: all 8 rows are unclear)")

    @needs_open_mpi
    def test_through_the_terminal_of_a_launcher_there_are_no_escapes(self):
        for command, shown in self.commands("mpirun", 1):
            terminal = self.assert_on_terminal(command, shown)
            self.assertNotIn("\x1b", terminal.raw)
            self.assertFalse(STATUS.search(terminal.raw), terminal.raw)

    @unittest.skipIf(why_not(), why_not())
    def test_under_srun_it_writes_what_the_page_shows(self):
        with OneNodeSlurm() as slurm:
            self.variables.update(slurm.environment)
            for command, shown in self.commands("srun", 1):
                self.assert_piped(command, shown)

    def test_a_mistyped_case_is_answered_once(self):
        commands = ["shmemctl run -n 4 bench putt"]
        if has_open_mpi():
            commands.append("mpirun -n 4 shmemctl bench putt")
        for command in commands:
            with self.subTest(command=command):
                done = self.bash(command)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(error_lines(done.stderr), ['shmemctl: error: bench: unknown case "putt"'])
                self.assertIn("fix: did you mean put? ", done.stderr)

    def test_what_all_pes_lack_is_said_once(self):
        command = "bench put --sizes 4M --quick --symmetric-size 1M"
        commands = [f"shmemctl run -n 4 {command}"]
        if has_open_mpi():
            commands.append(f"mpirun -n 4 shmemctl {command}")
        for one in commands:
            with self.subTest(command=one):
                done = self.bash(one)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertEqual(len(error_lines(done.stderr)), 1, done.stderr)
                size = re.search(r"--symmetric-size (\S+) or more", done.stderr)[1]
        again = self.bash(f"shmemctl run -n 2 {command.replace('1M', size)}")
        self.assertEqual(again.returncode, 0, again.stderr)  # that fix works


class TheseTests(unittest.TestCase):
    """They notice when the page is no longer what the program writes."""

    def test_a_page_that_is_out_of_date_is_found(self):
        [_, shown] = console_commands(PAGE, "shmemctl run")[0]
        self.assertEqual(measured_difference(shown, shown), "")
        for change in (lambda line: line.replace("p50", "p60"), lambda line: line.replace("shm", "ucx"),
                       lambda line: line.replace("passed", "failed"), lambda line: line.replace(" 512 ", " 514 "),
                       lambda line: line.replace("--quick", "--quickly"), lambda line: line.replace("uni", "bi")):
            changed = [change(line) for line in shown]
            self.assertNotEqual(changed, shown)
            self.assertNotEqual(measured_difference(changed, shown), "")
        rows = [at for at, line in enumerate(shown) if line.startswith("  256K")]
        self.assertEqual(len(rows), 1)
        self.assertNotEqual(measured_difference(shown[:rows[0]] + shown[rows[0] + 1:], shown), "")


if __name__ == "__main__":
    unittest.main()
