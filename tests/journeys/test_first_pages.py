"""What somebody new reads first, README and docs/tutorials/new-node.md, is what the commands write."""
import re
import unittest

from journey import Journey  # first: it finds support
from page import console_commands, difference, masked, unaligned, without_hosts
from support import SOURCE

PARTS = ["topo", "doctor", "gpu-links", "bringup", "bench", "moe", "bench-gpu"]


def form_of_check(lines):
    """The parts in their order and the last two lines. Which findings there are, and what became of each part, is the
    machine's."""
    form = []
    for line in lines:
        part = re.match(r"\[[✓✗!-]\] ([a-z-]+)  ", line)
        if part and part[1] in PARTS:
            form.append(f"part {part[1]}")
        elif re.match(r"(PASS|FAIL|nothing to check): ", line):
            form.append("verdict")
        elif line.strip() and not re.match(r"\[[x!i]\] |    ", line):
            form.append(line)
    return form


def form_of_bringup(line):
    return masked(re.sub(r"^(registered buffers: ).*", r"\1", without_hosts(line)))


class NewNode(Journey):
    """docs/tutorials/new-node.md shows what the commands write."""
    PAGE = SOURCE / "docs" / "tutorials" / "new-node.md"

    def commands(self, words):
        found = console_commands(self.PAGE, words)
        self.assertTrue(found, words)
        return found

    def test_of_a_recorded_machine_to_the_letter(self):
        commands = self.commands("shmemctl topo --from")
        self.assertEqual(len(commands), 2)
        for command, shown in commands:
            with self.subTest(command=command):
                done = self.bash(command)
                self.assertEqual((done.returncode, done.stderr), (1 if "deepep-ht" in command else 0, ""))
                written = [line for line in done.stdout.splitlines() if line]
                self.assertEqual(difference([line for line in shown if line], written, unaligned), "", done.stdout)

    def test_check(self):
        [(command, shown)] = self.commands("shmemctl check")
        done = self.bash(command)
        self.assertEqual(done.stderr, "")
        self.assertEqual(form_of_check(done.stdout.splitlines()), form_of_check(shown), done.stdout)
        self.assertEqual(form_of_check(shown)[:-2], [f"part {part}" for part in PARTS])

    def test_bringup(self):
        [(command, shown)] = self.commands("bringup")
        done = self.bash(command)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 100 and "no GPUs" not in line], [])
        if "by kernels" in done.stdout or "GPU" in done.stdout:
            self.skipTest("with GPUs it shows more than the page does")
        self.assertEqual(difference(shown, done.stdout.splitlines(), form_of_bringup), "", done.stdout)


class Readme(NewNode):
    """README shows what the commands write."""
    PAGE = SOURCE / "README.md"

    def test_of_a_recorded_machine_to_the_letter(self):
        [(command, shown)] = self.commands("shmemctl topo --from")
        done = self.bash(command)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        written = [line for line in done.stdout.splitlines() if line]
        self.assertEqual(difference([line for line in shown if line], written, unaligned), "", done.stdout)

    def test_measurements(self):
        for words in ("bench put", "moe"):
            [(command, shown)] = [one for one in self.commands(f"{words} --") if "run" in one[0]]
            with self.subTest(command=command):
                self.assert_piped(command, shown)

    test_check = test_bringup = None  # it has neither


if __name__ == "__main__":
    unittest.main()
