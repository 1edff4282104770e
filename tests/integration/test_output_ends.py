"""Output that cannot be written, input that never arrives, errors of many PEs: who prints the error, and the exit code."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from job_support import PATIENCE_S, default_signals
from launchers import launch, needs
from support import BINARY, DATA, CliTest, clean_environment, error_lines, run
from test_uid import free_port

NODE = DATA / "nccl" / "hgx-8gpu-8nic.xml"
SMALL = {"SHMEMCTL_SYMMETRIC_SIZE": "16M"}


class Folder(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fifo(self, name="fifo"):
        path = self.folder / name
        os.mkfifo(path)
        return path


class Stdout(Folder):
    """Every command, with a stdout that refuses: exit code 3, one error, which is about stdout."""

    def commands(self):
        report = self.folder / "report.json"
        self.assertIn(run("topo", "--from", NODE, "--json", report)[0], (0, 1))
        return [("--version",), ("--help",), ("topo", "--help"), ("env",), ("topo", "--from", NODE),
                ("topo", "--from", NODE, "--json", "-"), ("topo", "--from", NODE, "--dump", "hwloc-xml"),
                ("doctor", "--list"), ("doctor", "--only", "memlock"), ("bench", "--list"), ("bringup",),
                ("sim", "--from", NODE, "--steps", "2"), ("hotspots", "-D", "0.1"),
                ("hotspots", "--watch", "0.1"), ("completion", "bash"), ("report", "schema"),
                ("report", "show", report), ("report", "validate", report), ("report", "html", report),
                ("report", "csv", report), ("report", "merge", report),
                ("run", "--help"), ("run", "-n", "2", "bringup"), ("run", "-n", "2", "env"),
                ("run", "-n", "2", "echo", "words")]

    def assert_refused_output(self, words, code, err):
        self.assertEqual(code, 3, (words, err))
        lines = error_lines(err)
        self.assertEqual(len(lines), 1, (words, err))
        self.assertRegex(lines[0], "stdout.*cannot write|cannot write.*stdout", words)
        self.assertNotRegex(err, r"\bPE \d", words)

    def run_with(self, script, words, env=None):
        done = subprocess.run(["sh", "-c", script, BINARY, *map(str, words)], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, preexec_fn=default_signals, timeout=PATIENCE_S, check=False,
                              env=clean_environment(**SMALL, **(env or {})))
        return done.returncode, done.stderr.decode()

    def test_a_full_device(self):
        for words in self.commands():
            with self.subTest(words=words):
                code, err = self.run_with('exec "$0" "$@" >/dev/full', words)
                self.assert_refused_output(words, code, err)
                # If the C++ stream has discarded output meanwhile, the system's error text is lost.
                self.assertRegex(err, "No space left on device|short write")

    def test_closed_stdout(self):
        for words in self.commands():
            with self.subTest(words=words):
                self.assert_refused_output(words, *self.run_with('exec "$0" "$@" >&-', words))

    def test_nothing_to_write_is_no_error(self):
        for words in (("topo", "--from", NODE, "--quiet"), ("run", "-n", "2", "bringup", "--quiet"),
                      ("run", "-n", "2", "true")):
            with self.subTest(words=words):
                code, err = self.run_with('exec "$0" "$@" >&-', words)
                self.assertIn(code, (0, 1), err)

    def test_no_file_takes_the_descriptor_of_a_closed_stdout(self):
        path = self.folder / "r.json"
        code, err = self.run_with('exec "$0" "$@" >&-', ("topo", "--from", NODE, "--json", path))
        self.assertEqual(code, 3, err)
        self.assertEqual(json.loads(path.read_text())["status"], "complete")

    def test_a_job_whose_output_is_lost_still_writes_its_report(self):
        path = self.folder / "r.json"
        code, err = self.run_with('exec "$0" "$@" >/dev/full', ("run", "-n", "2", "bringup", "--json", path))
        self.assertEqual(code, 3, err)
        self.assertEqual(json.loads(path.read_text())["status"], "complete")


class ReaderLeaves(Folder):
    """`| head -1`: the report of the run is written all the same; without one, SIGPIPE ends it."""

    #: It prints rows until a second after the reader has left.
    SWEEP = ("run", "-n", "2", "bench", "put", "-b", "8", "-e", "64", "-f", "2", "-D", "0.5")

    def end_behind(self, words, lines, env=None):
        """(exit code, stderr) of a process whose reader leaves after so many lines."""
        read_end, write_end = os.pipe()
        reader = os.fdopen(read_end, "rb")
        if lines == 0:
            reader.close()
        with subprocess.Popen([BINARY, *map(str, words)], stdin=subprocess.DEVNULL, stdout=write_end,
                              stderr=subprocess.PIPE, preexec_fn=default_signals,
                              env=clean_environment(**SMALL, **(env or {}))) as process:
            os.close(write_end)
            for _ in range(lines):
                self.assertTrue(reader.readline())
            reader.close()
            err = process.stderr.read().decode()
            return process.wait(PATIENCE_S), err

    def end_behind_head(self, *words, env=None):
        return self.end_behind(words, 1, env)

    def assert_report(self, path, rows):
        report = json.loads(path.read_text())
        self.assertEqual((report["status"], report["exit_code"]), ("complete", 0))
        self.assertEqual(len(report["results"]), rows)

    def test_a_job_under_run(self):
        path = self.folder / "r.json"
        code, err = self.end_behind_head(*self.SWEEP, "--json", path)
        self.assertEqual((code, error_lines(err)), (0, []), err)
        self.assert_report(path, 4)

    def test_a_process_of_its_own(self):
        expected = run("topo", "--from", NODE)[0]
        path = self.folder / "r.json"
        code, err = self.end_behind(("topo", "--from", NODE, "--json", path), 0)
        self.assertEqual((code, error_lines(err)), (expected, []), err)
        self.assertEqual(json.loads(path.read_text())["exit_code"], expected)
        path = self.folder / "r.csv"
        code, err = self.end_behind(("sim", "--from", NODE, "--steps", "2", "--csv", path), 0)
        self.assertEqual(error_lines(err), [], err)
        self.assertIn(code, (0, 1))
        self.assertTrue(path.stat().st_size)
        self.assertEqual(self.end_behind(("topo", "--from", NODE), 0)[0], -signal.SIGPIPE)

    def test_the_verdict_stays(self):
        path = self.folder / "r.json"
        code, err = self.end_behind_head(*self.SWEEP, "--json", path, env={"SHMEMCTL_FAULT": "corrupt:1:verify"})
        self.assertEqual(code, 1, err)
        self.assertEqual(json.loads(path.read_text())["exit_code"], 1)

    def test_a_watch_ends(self):
        path = self.folder / "r.json"
        code, err = self.end_behind_head("hotspots", "--watch", "0.2", "--json", path)
        self.assertEqual((code, error_lines(err)), (0, []), err)
        self.assertEqual(json.loads(path.read_text())["status"], "complete")

    def test_without_a_report(self):
        code, err = self.end_behind_head("hotspots", "--watch", "0.2")
        self.assertEqual(code, -signal.SIGPIPE, err)
        self.assertEqual(self.end_behind_head(*self.SWEEP)[0], 128 + signal.SIGPIPE)

    def test_what_is_started_is_ended_by_sigpipe(self):
        path = self.folder / "r.json"
        code, err = self.end_behind_head("hotspots", "--json", path, "--during", "yes")
        self.assertEqual(code, 1, err)
        found = json.loads(path.read_text())["findings"]
        self.assertTrue(any("SIGPIPE" in finding["message"] for finding in found), found)


class Blocking(Folder):
    """Pipes that nobody serves: the deadline and signals end the process all the same."""

    def start(self, *words, **keywords):
        keywords.setdefault("stdout", subprocess.DEVNULL)
        process = subprocess.Popen([BINARY, *map(str, words)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   preexec_fn=default_signals, env=clean_environment(), **keywords)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        return process

    def test_reading(self):
        fifo = self.fifo()
        for words in (("report", "show", fifo), ("report", "validate", fifo), ("report", "html", fifo),
                      ("report", "csv", fifo), ("report", "merge", fifo), ("report", "diff", fifo, fifo),
                      ("env", "--config", fifo), ("report", "show", NODE, "--config", fifo),
                      ("moe", "--routing", fifo), ("topo", "--from", fifo),
                      ("hotspots", "--thresholds", fifo), ("bringup", "--config", fifo)):
            with self.subTest(words=words):
                code, _, err = run(*words, "--timeout", "1", timeout=PATIENCE_S)
                self.assertEqual(code, 124, err)
                self.assertEqual(len(error_lines(err)), 1, err)
                self.assertIn("fifo", err)
                self.assertIn("timed out after 1 s", err)

    def test_the_environment_bounds_it_too(self):
        code, _, err = run("report", "show", self.fifo(), env={"SHMEMCTL_TIMEOUT": "1"}, timeout=PATIENCE_S)
        self.assertEqual(code, 124, err)

    def test_a_writer_that_comes_is_read_to_its_end(self):
        fifo = self.fifo()
        document = run("topo", "--from", NODE, "--json", "-")[1].encode()
        process = self.start("report", "show", fifo, "--timeout", "200", stdout=subprocess.PIPE)
        with open(fifo, "wb", buffering=0) as writer:  # waits for the reader
            writer.write(document[:100])
            self.assertIsNone(process.poll())
            writer.write(document[100:])
        out = process.stdout.read().decode()
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE_S), 0)
        self.assertEqual(out, run("topo", "--from", NODE)[1])

    def test_a_pipe_without_a_reader_times_out(self):
        code, _, err = run("topo", "--from", NODE, "--json", self.fifo(), timeout=PATIENCE_S)
        self.assertEqual(code, 3, err)
        self.assertIn("no process has opened it for reading", err)

    def test_the_deadline_ends_a_write(self):
        started = time.monotonic()
        code, _, err = run("topo", "--from", NODE, "--json", self.fifo(), "--timeout", "1", timeout=PATIENCE_S)
        self.assertEqual(code, 124, err)
        self.assertIn("timed out after 1 s", err)
        self.assertLess(time.monotonic() - started, 60)

    def blocked_writer(self, *flags):
        """One that hangs in write(2), as on a file system that does not answer."""
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        process = self.start("sim", "--from", NODE, "--nodes", "64", "--ep-ranks", "256", "--steps", "2", "--all",
                             "--json", "-", *flags, stdout=write_end)
        os.close(write_end)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and process.poll() is None:
            try:  # system call 1 is write, of descriptor 1
                if any(task.read_text().startswith("1 0x1 ")
                       for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*/syscall")):
                    return process
            except OSError:
                pass
            time.sleep(0.02)
        self.fail(f"it does not block: {process.poll()} {process.stderr.read()}")

    def test_a_signal_ends_a_process_that_hangs_in_a_write(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                process = self.blocked_writer()
                process.send_signal(number)
                self.assertEqual(process.wait(PATIENCE_S), 130)
                self.assertIn(b"nothing more could be written", process.stderr.read())

    def test_the_deadline_ends_a_process_that_hangs_in_a_write(self):
        process = self.blocked_writer("--timeout", "3")
        self.assertEqual(process.wait(PATIENCE_S), 124)
        self.assertIn(b"timed out after 3 s", process.stderr.read())


class Quiet(Folder):
    def test_quiet_prints_errors(self):
        code, out, err = run("env", "--quiet", env={"SHMEMCTL_WORLD": "mars"})
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(len(error_lines(err)), 1, err)
        self.assertIn("env-invalid: SHMEMCTL_WORLD=mars", err)
        self.assertIn("shmemctl: fix: unset SHMEMCTL_WORLD", err)

    def test_of_a_job_pe_0_prints_them(self):
        env = {"SHMEMCTL_FAULT": "corrupt:1:verify", **SMALL}
        code, out, err = run("run", "-n", "2", "bench", "put", "-b", "8", "-e", "8", "-n", "10", "--quiet", env=env)
        self.assertEqual((code, out), (1, ""), err)
        self.assertEqual(len([line for line in error_lines(err) if "bench-corrupt" in line]), 1, err)

    def test_quiet_hides_warnings(self):
        code, out, err = run("env", "--quiet", env={"SHMEMCTL_POLCY": "optimal"})
        self.assertEqual((code, out, err), (0, "", ""))


class OneError(Folder):
    """A job's error is printed once, not once for each PE."""

    def assert_once(self, code, err, *words):
        self.assertEqual(code, 2, err)
        self.assertEqual(len(error_lines(err)), 1, err)
        self.assertEqual(len([line for line in err.splitlines() if line.startswith("shmemctl: fix: ")]), 1, err)
        for word in words:
            self.assertIn(word, err)

    def test_under_run(self):
        for words, word in ((("bench", "putt"), "putt"), (("bench", "put", "--no-such-flag"), "--no-such-flag"),
                            (("bench", "put", "--pair", "0,9"), "9"), (("bringup", "--heap", "mars"), "mars")):
            with self.subTest(words=words):
                code, _, err = run("run", "-n", "8", *words, env=SMALL)
                self.assert_once(code, err, word)
                self.assertEqual(len(err.splitlines()), 2, err)

    def test_a_bad_variable_is_reported_once(self):
        code, _, err = run("run", "-n", "4", "bringup", env={"SHMEMCTL_SYMMETRIC_SIZE": "lots"})
        self.assert_once(code, err, "lots")

    def test_labels_show_who_says_what(self):
        err = run("run", "-n", "3", "--label", "bringup", env={"SHMEMCTL_SYMMETRIC_SIZE": "lots"})[2]
        self.assertEqual(len([line for line in err.splitlines() if "] shmemctl: error: " in line]), 3, err)

    #: What fails, and when: arguments, environment, exit codes (None: any but 0), words of the error.
    FAILURES = (
        ("the command line", ("bench", "putt"), {}, (2,), "putt"),
        ("an option of the environment", ("bringup",), {"SHMEMCTL_SYMMETRIC_SIZE": "lots"}, (2,), "lots"),
        ("a file", ("moe", "--routing", "/no/such/routing.json"), {}, (2, 3), "/no/such/routing.json"),
        ("all PEs alike, in the job", ("bench", "put", "--pair", "0,9"), {}, (2,), "no PE 9"),
        ("the bootstrap's name", ("bringup",), {"SHMEMCTL_BOOTSTRAP": "mars"}, (2,), "BOOTSTRAP=mars"),
        ("one PE before the failure detector", ("bringup",), {"SHMEMCTL_FAULT": "error:2:hosts"}, (3,), "PE 2"),
        ("PE 0 before the failure detector", ("bringup",), {"SHMEMCTL_FAULT": "error:0:failure-detector"}, (3,),
         "PE 0"),
        ("one PE in a phase", ("bringup",), {"SHMEMCTL_FAULT": "error:2:heap"}, (3,), "PE 2"),
        ("PE 0 in a phase", ("bringup",), {"SHMEMCTL_FAULT": "error:0:heap"}, (3,), "PE 0"),
        ("one PE is killed", ("bringup",), {"SHMEMCTL_FAULT": "kill:2:nics"}, None, "PE 2 .* was lost"),
        ("PE 0 is killed", ("bringup",), {"SHMEMCTL_FAULT": "kill:0:nics"}, None, "PE 0 .* was lost"))

    def assert_each_failure_once(self, start, failures=FAILURES):
        """@param start returns (exit code, stderr of the PEs, stderr of a launcher) of a job of four PEs"""
        for what, words, variables, codes, error in failures:
            with self.subTest(what):
                code, err, launchers_err = start(words, {**SMALL, **variables})
                if codes is None:
                    self.assertNotEqual(code, 0, err)
                else:
                    self.assertIn(code, codes, err)
                errors = [line for line in err.splitlines() if line.startswith("shmemctl: error: ")]
                fixes = [line for line in err.splitlines() if line.startswith("shmemctl: fix: ")]
                if codes is None and not err and re.search("exited on signal 9", launchers_err):
                    # the launcher ended the other PEs before one of them knew, and prints the reason itself
                    continue
                self.assertEqual((len(errors), len(fixes)), (1, 1), err)
                self.assertRegex(errors[0], error)

    def test_every_failure_under_run(self):
        def start(words, variables):
            code, _, err = run("run", "-n", "4", *words, env=variables)
            return code, err, ""
        self.assert_each_failure_once(start)

    def under(self, launcher):
        """To a file of their own: launchers that end a job may drop what its processes printed last."""
        def start(words, variables):
            path = self.folder / f"{len(list(self.folder.iterdir()))}.txt"
            outcome = launch([*launcher, "sh", "-c", 'exec "$0" "$@" 2>>"$STDERR_OF_PES"', BINARY, *words],
                             env={**variables, "STDERR_OF_PES": str(path)})
            self.assertEqual(outcome.left, [], outcome)
            return outcome.code, path.read_text(), outcome.err
        return start

    @needs("mpirun")
    def test_every_failure_under_mpirun(self):
        self.assert_each_failure_once(self.under(["mpirun", "-n", "4", "--oversubscribe"]))

    @needs("mpiexec.hydra")
    def test_every_failure_under_hydra(self):
        """It ends all processes by SIGKILL when one is killed, and may return the code of any."""
        failures = [(what, words, variables, None, error)
                    for what, words, variables, codes, error in self.FAILURES if codes is not None]
        self.assert_each_failure_once(self.under(["mpiexec.hydra", "-launcher", "fork", "-n", "4"]), failures)

    def test_of_a_killed_pe_run_adds_the_signal(self):
        code, _, err = run("run", "-n", "3", "bringup", env={**SMALL, "SHMEMCTL_FAULT": "kill:1:nics"})
        self.assertEqual(code, 137, err)
        self.assertIn("shmemctl: PE 1 was killed by signal 9", err.splitlines()[-1])

    def test_a_job_by_hand_has_a_terminal_for_each_pe(self):
        port = free_port()
        processes = []
        for rank in range(2):
            processes.append(subprocess.Popen(
                [BINARY, "bringup"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env=clean_environment(
                    **SMALL, SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=f"127.0.0.1:{port}", SHMEMCTL_FAULT="error:1:heap",
                    SHMEMCTL_BOOTSTRAP_UID_SECRET="open sesame", SHMEMCTL_BOOTSTRAP_UID_RANK=str(rank),
                    SHMEMCTL_BOOTSTRAP_UID_SIZE="2")))
        for process in processes:
            err = process.communicate(timeout=PATIENCE_S)[1].decode()
            self.assertEqual(process.returncode, 3, err)
            self.assertEqual(len(error_lines(err)), 1, err)
            self.assertIn("PE 1", error_lines(err)[0])


class Colour(CliTest):
    @needs("mpirun")
    def test_no_colour_on_a_launchers_pseudo_terminal(self):
        """Open MPI gives each rank a pseudo terminal, and copies it into whatever its own stdout is."""
        for words in (("-n", "2", BINARY, "bringup"), ("-n", "1", BINARY, "topo", "--from", NODE)):
            with self.subTest(words=words):
                outcome = launch(["mpirun", "--oversubscribe", *words], env={"TERM": "xterm", **SMALL})
                self.assertIn(outcome.code, (0, 1), outcome)
                self.assertTrue(outcome.out)
                self.assertNotIn("\x1b", outcome.out)

    @needs("mpirun")
    def test_colour_on_request(self):
        outcome = launch(["mpirun", "-n", "1", BINARY, "topo", "--from", NODE, "--color", "always"])
        self.assertIn("\x1b[", outcome.out, outcome)


if __name__ == "__main__":
    unittest.main()
