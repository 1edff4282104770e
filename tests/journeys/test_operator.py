"""An operator on a new node, with the tutorial's commands: is it all right, which NIC does what, what
has to change? On a terminal of 80 x 24, through a pipe, and under mpirun."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from terminal import ROWS, Screen, Terminal  # first: it finds support
from job_support import PATIENCE_S, marked, processes_with
from support import BINARY, DATA, clean_environment, run

PARTS = ["topo", "doctor", "gpu-links", "bringup", "bench", "moe", "bench-gpu"]
END = re.compile(r"^(PASS|FAIL|nothing to check): .*[;,] \d+ errors?, \d+ warnings?(, \d+ info)?; [\d.]+ s$", re.MULTILINE)
CODES = {"PASS": 0, "FAIL": 1, "nothing to check": 3}
STATUS = re.compile(r"^shmemctl: \d+ s, ", re.MULTILINE)


def unwrapped(text):
    """Without the breaks that were made for the terminal."""
    return re.sub(r"\n    (?! *fix:)", " ", text)


class OperatorTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_verdict(self, text, code):
        found = END.findall(unwrapped(text))
        self.assertEqual(len(found), 1, text)
        self.assertEqual(code, CODES[found[0][0]], text)


class Check(OperatorTest):
    """The acceptance test: the answer is on the screen when the prompt returns."""

    def test_on_a_terminal_the_last_screen_is_the_verdict(self):
        report = self.folder / "check.json"
        terminal = Terminal(BINARY, "check", "--timeout", "250", "--json", str(report))
        screen = terminal.screen.visible()
        self.assert_verdict(screen, terminal.code)
        self.assertEqual(re.findall(r"^\[.\] ([a-z-]+) ", screen, re.MULTILINE)[-len(PARTS):], PARTS, screen)
        self.assertIn(f"details: shmemctl report show --verbose {report}", unwrapped(screen).replace("\n", ""))
        # It says what it does while it does it, and nothing of that is left.
        self.assertTrue(any(re.search(r"^shmemctl: \d+ s, check: bench, part 5 of 7$", moment, re.MULTILINE)
                            for moment in terminal.moments), terminal.moments[:20])
        self.assertFalse(STATUS.search(terminal.screen.text()), terminal.screen.text())
        # Tables and phases are for --verbose.
        self.assertNotIn("p50 [us]", terminal.screen.text())
        verbose = run("report", "show", "--verbose", report)[1]
        self.assertIn("p50 [us]", verbose)
        self.assertTrue(END.search(verbose), verbose[-500:])
        self.assertEqual(json.loads(report.read_text())["exit_code"], terminal.code)

    def test_of_a_healthy_node_it_is_one_screen(self):
        """A report of a node with eight GPUs and NICs that found infos only."""
        topology = json.loads(run("topo", "--from", DATA / "nccl" / "pairs-8gpu-8nic.xml", "--json", "-")[1])
        report = dict(topology, command=["shmemctl", "check"], status="complete", exit_code=0)
        report["findings"] = [{"id": "a-note", "severity": "info", "subject": "x", "message": "m " * 200, "fix": "f"}] * 9
        report["checks"] = [{"id": part, "title": "t", "group": "verdict", "status": "pass", "reason": "nothing is wrong",
                             "evidence": "", "fix": "", "time_s": 1.25} for part in PARTS]
        path = self.folder / "healthy.json"
        path.write_text(json.dumps(report))
        terminal = Terminal(BINARY, "report", "show", str(path))
        self.assertEqual(terminal.code, 0, terminal.screen.text())
        self.assertLess(len(terminal.screen.text().splitlines()), ROWS)
        self.assertRegex(terminal.screen.text(), r"(?m)^PASS: .*8 GPUs, 8 RDMA devices; 0 errors, 0 warnings, 9 info")

    def test_through_a_pipe_it_has_neither_status_nor_escapes(self):
        code, out, err = run("check", "--level", "1")
        self.assert_verdict(out, code)
        self.assertEqual(err, "")
        self.assertNotIn("\x1b", out)
        self.assertRegex(out, r"(?m)^\[-\] bench .*runs with --level 2 or higher$")

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_under_mpirun_it_is_the_same(self):
        done = subprocess.run(["mpirun", "-n", "2", "--oversubscribe", "--allow-run-as-root", BINARY, "check", "--only",
                               "doctor", "--timeout", "200"], capture_output=True, text=True, timeout=300, check=False,
                              stdin=subprocess.DEVNULL, env=clean_environment())
        self.assert_verdict(done.stdout, done.returncode)
        self.assertNotIn("\x1b", done.stdout)

    def test_a_bare_machine_is_no_pass(self):
        (self.folder / "sys").mkdir()
        (self.folder / "proc").mkdir()
        code, out, err = run("check", "--sysroot", self.folder)
        self.assertRegex(out, "(?m)^nothing to check: no GPU, no RDMA device; ", err)
        self.assertNotRegex(out, "(?m)^PASS")
        self.assertEqual(code, 3, out)

    def test_what_fails_is_named_with_what_to_do(self):
        code, out, err = run("check", "--only", "bringup,bench", "--fail-early",
                             env={"SHMEMCTL_FAULT": "kill:1:heap", "SHMEMCTL_SYMMETRIC_SIZE": "64M"})
        self.assertEqual(code, 1, err)
        self.assertRegex(out, r"(?m)^\[x\] check-bringup .*PE 1")
        self.assertRegex(out, r"(?m)^    fix: \S")
        self.assertRegex(out, r"(?m)^\[.\] bringup +[\d.]+ s  1 error: ")
        self.assertRegex(out, r"(?m)^\[-\] bench .*bringup failed \(--fail-early\)$")
        self.assertRegex(out, "(?m)^FAIL: ")

    def test_what_fail_on_asks_for_is_named_as_the_reason(self):
        (self.folder / "sys").mkdir()
        (self.folder / "proc").mkdir()
        code, out, err = run("check", "--sysroot", self.folder, "--only", "topo", "--fail-on", "warning")
        self.assertEqual(code, 1, err)
        self.assertRegex(out, r"(?m)^FAIL: .*; 0 errors, \d+ warnings?(, \d+ info)? \(--fail-on warning\); [\d.]+ s$")

    def test_a_part_that_does_not_exist_is_answered_with_the_nearest(self):
        code, out, err = run("check", "--only", "bringpu")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("did you mean bringup?", err)

    def test_monitoring_gets_one_line_and_its_codes(self):
        code, out, err = run("check", "--nagios", "--only", "doctor")
        self.assertEqual(err, "")
        self.assertRegex(out, r"\ASHMEMCTL (OK|WARNING|CRITICAL|UNKNOWN) - \S+: .* \| time=[\d.]+s errors=\d+ warnings=\d+ "
                              r"parts_failed=\d+\n\Z")
        self.assertEqual(code, ["OK", "WARNING", "CRITICAL", "UNKNOWN"].index(out.split()[1]))
        code, out, _ = run("check", "--nagios", "--only", "bringup",
                           env={"SHMEMCTL_FAULT": "kill:1:heap", "SHMEMCTL_SYMMETRIC_SIZE": "64M"})
        self.assertEqual(code, 2, out)
        self.assertRegex(out, r"\ASHMEMCTL CRITICAL - .*check-bringup")


class Waiting(OperatorTest):
    """Who waits sees what for, and who stops keeps what there is."""

    def test_a_job_says_what_it_measures(self):
        terminal = Terminal(BINARY, "run", "-n", "2", "bench", "put", "-b", "8", "-e", "8", "-D", "3",
                            "--symmetric-size", "64M")
        self.assertEqual(terminal.code, 0, terminal.screen.text())
        self.assertTrue(any(re.search(r"^shmemctl: \d+ s, .*put", moment, re.MULTILINE) for moment in terminal.moments),
                        terminal.moments[:20])
        self.assertFalse(STATUS.search(terminal.screen.text()), terminal.screen.text())

    def test_no_progress_and_quiet_say_nothing(self):
        for flag in ("--no-progress", "--quiet"):
            terminal = Terminal(BINARY, "run", "-n", "2", "bench", "put", "-b", "8", "-e", "8", "-D", "2",
                                "--symmetric-size", "64M", flag)
            self.assertEqual(terminal.code, 0, terminal.screen.text())
            self.assertNotRegex(terminal.raw, r"shmemctl: \d+ s, ")

    def test_data_on_the_terminal_is_not_behind_the_status(self):
        terminal = Terminal(BINARY, "hotspots", "-D", "3", "--json", "-")
        self.assertIn(terminal.code, (0, 1), terminal.screen.text())
        self.assertTrue(any(STATUS.search(moment) for moment in terminal.moments), terminal.moments[:5])
        screen = Screen(columns=1000000)
        screen.feed(terminal.raw)
        self.assertEqual(json.loads(screen.text())["command"][1], "hotspots", screen.text()[:200])

    def test_a_page_that_takes_long_says_what_it_waits_for(self):
        report, page = self.folder / "r.json", self.folder / "page.html"
        run("topo", "--from", DATA / "nccl" / "hgx-8gpu-8nic.xml", "--json", report)
        for command, written in ((f"html - -o {page}", page), ("show -", None)):
            with self.subTest(command=command):
                terminal = Terminal("/bin/bash", "-c", f"(sleep 2.5; cat {report}) | {BINARY} report {command}")
                self.assertEqual(terminal.code, 0, terminal.screen.text())
                self.assertTrue(any(re.search(r"^shmemctl: \d+ s, reading stdin$", moment, re.MULTILINE)
                                    for moment in terminal.moments), terminal.moments[:5])
                self.assertFalse(STATUS.search(terminal.screen.text()), terminal.screen.text())
                self.assertTrue(written is None or written.exists())

    def test_a_watched_command_has_the_terminal_for_itself(self):
        terminal = Terminal(BINARY, "hotspots", "--during", "sh", "-c", "echo begun; sleep 2.5; echo ended")
        during = [moment for moment in terminal.moments if "begun" in moment and "ended" not in moment]
        self.assertTrue(during, terminal.screen.text())
        for moment in during:
            self.assertFalse(STATUS.search(moment), moment)

    def test_an_interrupt_says_what_was_kept(self):
        report = self.folder / "put.json"
        terminal = Terminal(BINARY, "run", "-n", "2", "bench", "put", "-b", "8", "-e", "64", "-D", "2",
                            "--symmetric-size", "64M", "--json", str(report), typed=[(r"bench put .*", "\x03")])
        self.assertEqual(terminal.code, 130, terminal.screen.text())
        said = terminal.screen.text().replace("\n", "")
        self.assertIn(f"shmemctl: interrupted by SIGINT: kept in {report}, as incomplete: ", said)
        self.assertEqual(json.loads(report.read_text())["status"], "incomplete")

    def test_an_interrupt_without_a_file_says_that_nothing_was(self):
        mark = marked()
        terminal = Terminal(BINARY, "check", typed=[(r"check: b", "\x03")], environment=mark)
        self.assertEqual(terminal.code, 130, terminal.screen.text())
        self.assertIn("shmemctl: interrupted by SIGINT: nothing was kept; --json FILE keeps what was found",
                      terminal.screen.text().replace("\n", ""))
        end = time.monotonic() + PATIENCE_S
        while left := processes_with(mark):  # the job of the part that ran
            self.assertLess(time.monotonic(), end, f"still there: {left}")
            time.sleep(0.1)


class BrokenNode(OperatorTest):
    """From a recorded node to what is wrong and the line that mends it, with one command."""

    def test_the_first_command_names_it(self):
        node = DATA / "nccl" / "pairs-8gpu-8nic.xml"
        terminal = Terminal(BINARY, "topo", "--from", str(node), "--world", "deepep-ht")
        self.assertEqual(terminal.code, 1, terminal.screen.text())
        self.assertLess(terminal.seconds, 60)
        screen = terminal.screen.visible()
        self.assertIn("[x] mapping-collapse", screen)
        self.assertIn("fix: ", screen)


if __name__ == "__main__":
    unittest.main()
