"""scripts/run_tests.sh: a quarantined test is run and reported, and fails nothing; others do."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run_tests.sh"


class Quarantine(unittest.TestCase):
    def run_tests(self, quarantine, *options, extra="", **tests):
        """(exit code, output, names that ran) over tests that are shell commands, and `extra` for CTest."""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "CTestTestfile.cmake").write_text("".join(
                f'add_test([=[{name}]=] sh -c "echo {name} >> {build}/ran; {command}")\n'
                for name, command in tests.items()) + extra)
            (build / "list").write_text(quarantine)
            done = subprocess.run(
                [SCRIPT, build, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env={**os.environ, "SHMEMCTL_QUARANTINE": str(build / "list")}, timeout=120, check=False)
            ran = (build / "ran").read_text().split() if (build / "ran").exists() else []
        return done.returncode, done.stdout, ran

    def test_an_empty_quarantine(self):
        self.assertEqual(self.run_tests("# only this\n", good="true")[0], 0)
        code, out, ran = self.run_tests("", good="true", bad="false")
        self.assertNotEqual(code, 0, out)
        self.assertEqual(sorted(ran), ["bad", "good"], "each once")

    def test_a_failure_is_reported_and_fails_nothing(self):
        tests = {"A.Flaky/0": "echo why; false", "AxFlaky/0": "true", "good": "true"}
        code, out, ran = self.run_tests("# a\n\nA.Flaky/0 loses a race with the clock\n", **tests)
        self.assertEqual(code, 0, out)
        self.assertIn("quarantined: A.Flaky/0: failed (loses a race with the clock)\n", out)
        self.assertIn("why", out)
        self.assertEqual(sorted(ran), ["A.Flaky/0", "AxFlaky/0", "good"], "each once")

    def test_tests_that_are_not_quarantined_still_fail(self):
        code, out, _ = self.run_tests("flaky is slow\n", flaky="true", bad="false")
        self.assertNotEqual(code, 0, out)
        self.assertIn("quarantined: flaky: passed (is slow)\n", out)

    def test_a_name_that_no_test_has(self):
        code, out, _ = self.run_tests("gone was slow\n", good="true")
        self.assertEqual(code, 0, out)
        self.assertIn("quarantined: gone: no such test in this build (was slow)\n", out)

    def test_an_entry_needs_a_reason(self):
        code, out, ran = self.run_tests("flaky\n", flaky="false")
        self.assertEqual((code, ran), (2, []), out)
        self.assertIn("flaky: without a reason", out)

    def test_the_end_says_why_tests_failed(self):
        for quarantine in ("", "gone was slow\n"):
            with self.subTest(quarantine=quarantine):
                _, out, _ = self.run_tests(quarantine, good="echo Error: of a test that passed",
                                           telling="echo FAIL: test_sum; echo AssertionError: 2; "
                                                   "echo /usr/bin/ld: cannot find libx.a: No such file; seq 90; false",
                                           silent="seq 30; false", killed="kill -9 \\$\\$")
                end = out[out.index("failed: "):]
                self.assertRegex(end, r"failed: telling \([\d.]+ sec\)\n    FAIL: test_sum\n    AssertionError: 2\n"
                                 r"    /usr/bin/ld: cannot find libx.a")
                self.assertRegex(end, r"failed: silent \(.*\)\n    19\n")
                self.assertIn("\n    30\n", end)
                self.assertIn("failed: killed (", end)
                self.assertNotIn("a test that passed", end)

    def test_the_end_names_tests_that_timed_out_or_are_not_built(self):
        code, out, _ = self.run_tests("", "--timeout", "1", slow="echo started; sleep 20", extra=(
            'add_test(gone /nonexistent/program)\n'))
        self.assertNotEqual(code, 0, out)
        end = out[out.index("failed: "):]
        self.assertEqual(end.count("failed: "), 2, end)
        self.assertRegex(end, r"failed: slow \([\d.]+ sec\)\n    started\n")
        self.assertIn("failed: Unable to find executable: /nonexistent/program\n", end)

    def test_options_are_ctests(self):
        code, out, ran = self.run_tests("flaky is slow\n", "-R", "one", one="true", two="false", flaky="true")
        self.assertEqual((code, sorted(ran)), (0, ["flaky", "one"]), out)


if __name__ == "__main__":
    unittest.main()
