"""A model engineer with docs/tutorials/moe.md: how fast are dispatch and combine, what bounds them, what would a
cluster do? Every command of the page through pipes, on a terminal of 80 x 24, and under mpirun."""
import json
import re
import unittest

from journey import Journey, lines_of, needs_open_mpi
from page import commands_of, console_commands, difference, measured_difference, unaligned
from support import SOURCE

PAGE = SOURCE / "docs" / "tutorials" / "moe.md"
LAST_LINES = re.compile(r"^reached: .*\n(?:.*\n)*?bounded by: .*\n(?:.*\n)*?to try: ", re.MULTILINE)


class Moe(Journey):
    def test_through_pipes_it_writes_what_the_page_shows(self):
        found = console_commands(PAGE, "shmemctl run")
        self.assertEqual(len(found), 2)
        for command, shown in found:
            with self.subTest(command=command):
                self.assert_piped(command, shown)
        report = json.loads((self.folder / "moe.json").read_text(encoding="utf-8"))
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})

    def test_on_a_terminal_the_answer_is_on_the_last_screen(self):
        for command, shown in console_commands(PAGE, "shmemctl run"):
            with self.subTest(command=command):
                terminal = self.assert_on_terminal(command, shown)
                self.assertRegex(terminal.screen.visible(), LAST_LINES)
                self.assertNotRegex(terminal.screen.text(), r"(?m)^shmemctl: \d+ s, ")

    @needs_open_mpi
    def test_under_mpirun_it_is_the_same(self):
        command, shown = console_commands(PAGE, "shmemctl run -n 4 moe")[0]
        by_mpirun = command.replace("shmemctl run -n 4", "mpirun -n 4 shmemctl")
        as_shown = [line.replace("shmemctl run -n 4", "mpirun -n 4 shmemctl").replace("started by run", "started by mpirun")
                    .replace("bootstrap local", "bootstrap pmix") for line in shown]
        self.assertNotEqual(as_shown, shown)
        self.assert_piped(by_mpirun, as_shown)
        terminal = self.terminal(by_mpirun.replace("moe.json", "again.json"))
        self.assertEqual(terminal.code, 0, terminal.screen.text())
        self.assertNotIn("\x1b", terminal.raw)
        self.assertRegex(terminal.screen.text(), LAST_LINES)

    def test_phases_and_the_wait_matrix_are_for_verbose(self):
        command = "shmemctl run -n 2 moe --num-tokens 16 --hidden 256 --num-topk 2 --num-experts 8 --iters 3"
        plain, verbose = self.bash(command), self.bash(command + " --verbose")
        self.assertEqual((plain.returncode, verbose.returncode), (0, 0), verbose.stderr)
        self.assertNotIn("transfer", plain.stdout)
        self.assertRegex(verbose.stdout, r"(?m)^moe-dispatch .* transfer ")
        # Its axes are labelled.
        self.assertRegex(verbose.stdout, r"(?m)^dispatch: how long a PE waits for another, in us\n"
                                         r" +a row waits for \| PE +0 +1\n +PE 0 \| +- +[\d.]+\n +PE 1 \| +[\d.]+ +-$")
        for text in (plain.stdout, verbose.stdout):
            self.assertEqual(len(LAST_LINES.findall(text)), 1, text)

    def test_what_cannot_be_shared_evenly_is_answered_with_what_can(self):
        done = self.bash("shmemctl run -n 2 moe --num-experts 63")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("fix: use the nearest legal value: 62 or 64", done.stderr)


class Cluster(Journey):
    def test_the_page_shows_what_sim_writes(self):
        found = [(command, shown) for command, shown in console_commands(PAGE, "shmemctl sim") if shown]
        self.assertEqual(len(found), 1)
        for command, shown in found:
            done = self.bash(command)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertEqual(difference(without_blank_lines(shown), without_blank_lines(done.stdout.splitlines()), unaligned), "", done.stdout)
            # On a terminal the same words, broken at its width.
            terminal = self.terminal(command.replace("sim.json", "again.json"))
            self.assertEqual(terminal.code, 0)
            self.assertEqual("\n".join(lines_of(terminal)).split(), done.stdout.split())

    def test_what_if(self):
        block = [command for command, shown in commands_of(PAGE.read_text(encoding="utf-8"))
                 if shown is None and command.startswith("shmemctl sim")]
        self.assertEqual(len(block), 1)
        lines = block[0].splitlines()
        self.assertEqual(len(lines), 3)
        for line in lines:
            with self.subTest(command=line):
                done = self.bash(line)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                if "--kill-nic" in line:
                    self.assertRegex(done.stdout, r"(?m)^every node's mlx5_3/1 is killed: PE 2 uses mlx5_2/1, as PE 3 does$")
                if "--routing zipf" in line:
                    self.assertRegex(done.stdout, r"fix: the mapping is not at fault: spread the popular experts")

    def test_more_ranks_than_experts_are_answered_with_what_works(self):
        command = "shmemctl sim --from tests/data/nccl/pairs-8gpu-8nic.xml --nodes 2048"
        done = self.bash(command)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        fix = re.search(r"--ep-ranks \d+", done.stderr.split("fix: ")[1])[0]
        self.assertEqual(self.bash(f"{command} {fix}").returncode, 0)

    def test_a_balanced_cluster_has_no_culprit(self):
        done = self.bash("shmemctl sim --from tests/data/nccl/pairs-8gpu-8nic.xml --nodes 32")
        self.assertRegex(done.stdout, r"\Aall NICs carry the same: ")
        self.assertIn("No findings.", done.stdout)


def without_blank_lines(lines):
    return [line for line in lines if line.strip()]


class TheseTests(unittest.TestCase):
    """They notice when the page is no longer what the program writes."""

    def test_a_page_that_is_out_of_date_is_found(self):
        _, shown = console_commands(PAGE, "shmemctl run")[0]
        self.assertEqual(measured_difference(shown, shown), "")
        for change in (lambda line: line.replace("bounded by:", "limited by:"), lambda line: line.replace("GB/s wire", "GB/s"),
                       lambda line: line.replace("moe-combine ", "moe-combined"), lambda line: line.replace("bf16", "fp8")):
            changed = [change(line) for line in shown]
            self.assertNotEqual(changed, shown)
            self.assertNotEqual(measured_difference(changed, shown), "")


if __name__ == "__main__":
    unittest.main()
