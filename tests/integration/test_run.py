"""`shmemctl run` with plain commands: output and exit codes."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from job_support import PATIENCE_S, PYTHON, RunTest, processes_with, run_bytes, sh, start
from support import BINARY, clean_environment, error_lines


def cpu_list(text):
    """{0, 1, 2, 5} of "0-2,5"."""
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {cpu for part in ends for cpu in range(part[0], part[-1] + 1)}


class Output(RunTest):
    def test_each_pe_knows_its_place(self):
        code, out, _ = run_bytes("-n", 4, "--nodes", 2, *sh(
            "echo $SHMEMCTL_LOCAL_RANK $SHMEMCTL_LOCAL_SIZE $SHMEMCTL_LOCAL_NODE"))
        self.assertEqual(code, 0)
        self.assertEqual(sorted(out.splitlines()), [b"0 4 0", b"1 4 0", b"2 4 1", b"3 4 1"])

    def test_one_node_sets_no_node(self):
        _, out, _ = run_bytes("-n", 2, *sh("echo ${SHMEMCTL_LOCAL_NODE-unset}"))
        self.assertEqual(out, b"unset\nunset\n")

    def test_all_pes_share_one_job_id(self):
        _, out, _ = run_bytes("-n", 3, *sh("echo $SHMEMCTL_LOCAL_ID"))
        lines = set(out.splitlines())
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines.pop())

    def test_labels(self):
        _, out, err = run_bytes("-n", 2, "--label", *sh("echo a; echo b; echo c >&2"))
        for pe in (b"0", b"1"):
            mine = [line for line in out.splitlines() if line.startswith(b"[" + pe + b"] ")]
            self.assertEqual(mine, [b"[" + pe + b"] a", b"[" + pe + b"] b"])
            self.assertIn(b"[" + pe + b"] c", err.splitlines())

    def test_binary_output_is_not_changed(self):
        script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"
        code, out, _ = run_bytes("-n", 1, PYTHON, "-c", script)
        self.assertEqual(code, 0)
        self.assertEqual(out, bytes(range(256)) * 1000)

    def test_last_line_without_newline_arrives(self):
        _, out, _ = run_bytes("-n", 2, "printf", "x")
        self.assertEqual(out, b"x\nx")

    def test_huge_outputs_keep_their_lines(self):
        script = ("import os,sys\nr=os.environ['SHMEMCTL_LOCAL_RANK']\n"
                  "for i in range(20000):\n  print(r, i, r*200)\n"
                  "  print(r, i, r*200, file=sys.stderr)\n")
        code, out, err = run_bytes("-n", 4, PYTHON, "-c", script)
        self.assertEqual(code, 0)
        for text in (out, err):
            lines = text.decode().splitlines()
            self.assertEqual(len(lines), 80000)
            for rank in "0123":
                mine = [line for line in lines if line.startswith(rank + " ")]
                self.assertEqual(mine, [f"{rank} {i} {rank * 200}" for i in range(20000)])

    def test_very_long_lines_are_not_mixed(self):
        script = ("import os,sys\nr=os.environ['SHMEMCTL_LOCAL_RANK']\n"
                  "for i in range(3):\n  sys.stdout.write(r*3000000+'\\n')\n")
        code, out, _ = run_bytes("-n", 3, PYTHON, "-c", script)
        self.assertEqual(code, 0)
        lines = out.decode().splitlines()
        self.assertEqual(sorted(lines), sorted(rank * 3000000 for rank in "012" for _ in range(3)))

    def test_64_pes(self):
        code, out, _ = run_bytes("-n", 64, *sh("echo $SHMEMCTL_LOCAL_RANK"))
        self.assertEqual(code, 0)
        self.assertEqual(sorted(map(int, out.split())), list(range(64)))

    def test_reader_that_goes_away_ends_an_endless_job(self):
        process = start("-n", 2, "yes", mark=self.mark)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGPIPE)
        self.assert_no_orphan()
        process.stderr.close()

    def test_reader_that_does_not_read_stops_nobody_from_interrupting(self):
        process = start("-n", 2, "yes", mark=self.mark)
        process.stdout.readline()
        time.sleep(0.2)  # lets the pipes fill; no result depends on it
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        self.assert_no_orphan_or_blocked(process)

    def assert_no_orphan_or_blocked(self, process):
        end = time.monotonic() + PATIENCE_S
        while len(processes_with(self.mark)) > 2 and time.monotonic() < end:
            time.sleep(0.02)
        process.stdout.read()
        process.wait(PATIENCE_S)
        self.assert_no_orphan()
        process.stdout.close()
        process.stderr.close()

    def test_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BINARY, "run", "-n", "2", "echo", "x"], stdout=full,
                                  stderr=subprocess.PIPE, env=clean_environment(), timeout=PATIENCE_S,
                                  check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("No space left", done.stderr.decode())

    def test_stdin_goes_to_pe_0_only(self):
        code, out, _ = run_bytes("-n", 3, "--label", "cat", stdin=b"one\ntwo\n")
        self.assertEqual(code, 0)
        self.assertEqual(out, b"[0] one\n[0] two\n")

    def test_closed_standard_descriptors(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" run -n 2 sh -c "exit 4" <&- >&- 2>&-', BINARY],
                              env=clean_environment(), timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 4)

    def test_output_to_a_file_and_its_end(self):
        with tempfile.TemporaryFile() as file:
            file.write(b"before\n")
            file.flush()
            subprocess.run([BINARY, "run", "-n", "1", "echo", "after"], stdout=file,
                           env=clean_environment(), timeout=PATIENCE_S, check=True)
            file.seek(0)
            self.assertEqual(file.read(), b"before\nafter\n")


class ExitCodes(RunTest):
    def test_success(self):
        self.assertEqual(run_bytes("-n", 3, "true")[0], 0)

    def test_all_pes_fail_with_the_same_code(self):
        code, _, err = run_bytes("-n", 3, "false")
        self.assertEqual(code, 1)
        self.assertEqual(err.decode(), "shmemctl: error: all 3 PEs ended with exit code 1\n")

    def test_first_failure_with_its_last_words(self):
        process = start("-n", 3, *sh("if [ $SHMEMCTL_LOCAL_RANK = 1 ]; then echo so sad >&2; exit 9; fi; "
                                     "exec sleep 1000"), mark=self.mark)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 9)
        self.assertEqual(error_lines(err.decode()),
                         ["shmemctl: error: PE 1 ended with exit code 9; its last words: so sad"])
        self.assert_no_orphan()

    def test_killed_pe(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                code, _, err = run_bytes("-n", 3, *sh(
                    f"[ $SHMEMCTL_LOCAL_RANK != 2 ] || kill -{int(number)} $$; exec sleep 1000"))
                self.assertEqual(code, 128 + number)
                self.assertIn(f"PE 2 was killed by signal {int(number)} (", err.decode())

    def test_pe_that_ends_early_is_no_failure(self):
        code, out, err = run_bytes("-n", 2, *sh(
            "[ $SHMEMCTL_LOCAL_RANK = 0 ] || { sleep 0.3; echo late; }"))
        self.assertEqual((code, out, err), (0, b"late\n", b""))

    def test_programs_that_cannot_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "plain").write_text("text")
            (path / "plain").chmod(0o644)
            (path / "broken").write_text("#!/no/such/interpreter\n")
            (path / "broken").chmod(0o755)
            for command in ("no-such-program-anywhere", folder, path / "plain", path / "broken"):
                with self.subTest(command=command):
                    code, out, err = run_bytes("-n", 3, command)
                    self.assert_refused((code, out.decode(), err.decode()))

    def test_bad_invocations(self):
        for arguments in ((), ("-n", 2), ("-n", 0, "true"), ("-n", -1, "true"), ("-n", "x", "true"),
                          ("true",), ("-n", 2, "--nodes", 3, "true"), ("-n", 2, "--nodes", 0, "true"),
                          ("-n", 2, "--no-such-option", "true"), ("-n", 2, "--timeout", -1, "true"),
                          ("-n", 2, ""), ("-n", 99999, "true")):
            with self.subTest(arguments=arguments):
                code, out, err = run_bytes(*arguments)
                self.assert_refused((code, out.decode(), err.decode()))

    def test_report_flags_belong_to_the_command(self):
        done = subprocess.run([BINARY, "--json", "x.json", "run", "-n", "2", "true"], capture_output=True,
                              env=clean_environment(), timeout=PATIENCE_S, check=False)
        err = self.assert_refused((done.returncode, done.stdout.decode(), done.stderr.decode()))
        self.assertIn("--json", err)

    def test_options_behind_the_command_are_its_own(self):
        _, out, _ = run_bytes("-n", 1, "echo", "-n", "2", "--label", "--", "x")
        self.assertEqual(out, b"2 --label -- x")
        for options in (("-n", 1), ("-n1",), ("--pes=1", "--label", "--nodes", 1)):
            _, out, err = run_bytes(*options, "--", "echo", "--help", "--", "[a,b]", "%%", "")
            self.assertTrue(out.endswith(b"--help -- [a,b] %% \n"), out + err)
        _, out, _ = run_bytes("-n", 1, "echo", "run", "--", "[a,b]", "%%")
        self.assertEqual(out, b"run -- [a,b] %%\n")

    def test_each_pe_has_cores_of_its_own_unless_it_is_told_otherwise(self):
        free = os.sched_getaffinity(0)
        script = ("sh", "-c", "echo $SHMEMCTL_LOCAL_RANK $(sed -n 's/^Cpus_allowed_list:[ \\t]*//p' /proc/self/status)")

        def where(*options, taskset=None):
            done = subprocess.run([*(["taskset", "-c", taskset] if taskset else []), BINARY, "--verbose", "run", "-n", "2",
                                   *options, *script], capture_output=True, env=clean_environment(),
                                  timeout=PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [cpu_list(line.split()[1]) for line in sorted(done.stdout.decode().splitlines())], \
                done.stderr.decode()
        places, said = where()
        if "is bound" in said:
            self.assertFalse(places[0] & places[1], said)
            self.assertIn("PE 1 is bound to CPUs", said)
            self.assertTrue(all(place and place < free for place in places), places)
        else:
            self.assertIn("PEs are not bound to CPUs: ", said)
        places, said = where("--pin", "none")
        self.assertEqual(places, [free, free], said)
        self.assertIn("not bound to CPUs: --pin none", said)
        one = str(min(free))
        if len(free) > 1:
            places, said = where(taskset=one)
            self.assertEqual(places, [{min(free)}] * 2, said)
            self.assertIn("not bound", said)

    def test_own_subcommand_and_a_file_of_that_name(self):
        code, out, err = run_bytes("-n", 2, "completion", "bash")
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count(b"complete -F _shmemctl shmemctl\n"), 2)
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "topo"
            script.write_text("#!/bin/sh\necho mine\n")
            script.chmod(0o755)
            _, out, _ = run_bytes("-n", 1, script)
            self.assertEqual(out, b"mine\n")

    def test_timeout(self):
        process = start("-n", 2, "--timeout", 3, *sh("[ $SHMEMCTL_LOCAL_RANK = 0 ] || sleep 1000"),
                        mark=self.mark)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 124)
        self.assertIn("PE 1 still ran", err.decode())
        self.assert_no_orphan()

    def test_limits_are_inherited(self):
        script = 'ulimit -Sn 100; exec "$0" run -n 60 sh -c "ulimit -n"'
        done = subprocess.run(["sh", "-c", script, BINARY], capture_output=True, env=clean_environment(),
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), [b"100"] * 60)

    def test_colour_only_for_terminals(self):
        _, out, _ = run_bytes("-n", 1, *sh("echo ${SHMEMCTL_COLOR-unset}"))
        self.assertEqual(out, b"unset\n")
        _, out, _ = run_bytes("-n", 1, "--color", "never", *sh("echo ${SHMEMCTL_COLOR-unset}"))
        self.assertEqual(out, b"never\n")


if __name__ == "__main__":
    unittest.main()
