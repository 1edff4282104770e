"""`shmemctl run` with plain commands: output, exit codes, and that no process is left behind."""
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from support import BINARY, CliTest, clean_environment, error_lines

PYTHON = sys.executable
PATIENCE_S = 60


def marked():
    """A variable that finds every process that inherited it."""
    return {"SHMEMCTL_TEST_MARK": uuid.uuid4().hex}


def processes_with(mark):
    entry = f"SHMEMCTL_TEST_MARK={mark['SHMEMCTL_TEST_MARK']}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if entry in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def default_signals():
    """Test runners may have been started with some of them ignored."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


def start(*arguments, mark=None, env=None, **keywords):
    keywords.setdefault("stdin", subprocess.DEVNULL)
    keywords.setdefault("stdout", subprocess.PIPE)
    keywords.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([BINARY, "run", *map(str, arguments)], preexec_fn=default_signals,
                            env=clean_environment(**(mark or {}), **(env or {})), **keywords)


def run_bytes(*arguments, stdin=b"", env=None):
    done = subprocess.run([BINARY, "run", *map(str, arguments)], input=stdin, capture_output=True,
                          env=clean_environment(**(env or {})), timeout=PATIENCE_S,
                          preexec_fn=default_signals, check=False)
    return done.returncode, done.stdout, done.stderr


def sh(script):
    return ["sh", "-c", script]


class RunTest(CliTest):
    def setUp(self):
        self.mark = marked()

    def assert_no_orphan(self):
        end = time.monotonic() + PATIENCE_S
        while processes_with(self.mark):
            self.assertLess(time.monotonic(), end, f"left: {processes_with(self.mark)}")
            time.sleep(0.02)

    def wait_for_line(self, process, count=1):
        return [process.stdout.readline() for _ in range(count)]


class Output(RunTest):
    def test_each_pe_knows_its_place(self):
        code, out, _ = run_bytes("-n", 4, "--nodes", 2, *sh(
            "echo $SHMEMCTL_LOCAL_RANK $SHMEMCTL_LOCAL_SIZE $SHMEMCTL_LOCAL_NODE"))
        self.assertEqual(code, 0)
        self.assertEqual(sorted(out.splitlines()), [b"0 4 0", b"1 4 0", b"2 4 1", b"3 4 1"])

    def test_one_node_sets_no_node(self):
        _, out, _ = run_bytes("-n", 2, *sh("echo ${SHMEMCTL_LOCAL_NODE-unset}"))
        self.assertEqual(out, b"unset\nunset\n")

    def test_all_have_one_id(self):
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
        time.sleep(0.2)  # for the pipes to fill; nothing depends on it
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

    def test_all_fail_alike(self):
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

    def test_own_subcommand_and_a_file_of_that_name(self):
        code, out, err = run_bytes("-n", 2, "completion", "bash")
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count(b"complete -o filenames -F _shmemctl shmemctl\n"), 2)
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "topo"
            script.write_text("#!/bin/sh\necho mine\n")
            script.chmod(0o755)
            _, out, _ = run_bytes("-n", 1, script)
            self.assertEqual(out, b"mine\n")

    def test_timeout(self):
        process = start("-n", 2, "--timeout", 0.5, *sh("[ $SHMEMCTL_LOCAL_RANK = 0 ] || sleep 1000"),
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


class Signals(RunTest):
    def start_traps(self, names="INT TERM HUP USR1 USR2 QUIT"):
        """PEs that say which signal arrived, and end at TERM."""
        traps = "; ".join(f"trap 'echo got {name}' {name}" for name in names.split() if name != "TERM")
        process = start("-n", 2, *sh(
            f"{traps}; trap 'echo got TERM; exit 0' TERM; echo ready; "
            "while :; do sleep 0.05; done"), mark=self.mark)
        self.assertEqual(self.wait_for_line(process, 2), [b"ready\n"] * 2)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assert_no_orphan()
        return out, err

    def test_passed_on_once_each(self):
        for name in ("INT", "USR1", "USR2", "QUIT"):
            with self.subTest(signal=name):
                process = self.start_traps()
                process.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(self.wait_for_line(process, 2), [f"got {name}\n".encode()] * 2)
                out, _ = self.end(process)
                self.assertEqual(out, b"got TERM\n" * 2)
                self.assertEqual(process.returncode, 0)

    def test_plain_interrupt(self):
        process = start("-n", 3, *sh("echo ready; exec sleep 1000"), mark=self.mark)
        self.wait_for_line(process, 3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, err), (130, b""))
        self.assert_no_orphan()

    def test_plain_terminate(self):
        process = start("-n", 3, *sh("echo ready; exec sleep 1000"), mark=self.mark)
        self.wait_for_line(process, 3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 143)
        self.assert_no_orphan()

    def test_second_interrupt_kills(self):
        process = start("-n", 2, *sh("trap '' INT TERM HUP; echo ready; while :; do sleep 0.1; done"),
                        mark=self.mark)
        self.wait_for_line(process, 2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)  # two that are pending at once would be one
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 137)
        self.assert_no_orphan()

    def test_pes_that_ignore_terminate_are_killed(self):
        process = start("-n", 2, *sh("trap '' TERM; echo ready; while :; do sleep 0.1; done"), mark=self.mark)
        self.wait_for_line(process, 2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 137)
        self.assert_no_orphan()

    def test_nohup(self):
        process = subprocess.Popen([BINARY, "run", "-n", "1", *sh("echo ready; sleep 0.5; echo end")],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   env=clean_environment(**self.mark),
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_line(process)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (0, b"end\n"))

    def states(self, pids):
        found = []
        for pid in pids:
            try:
                found.append(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0])
            except OSError:
                pass
        return found

    def wait_for_states(self, pids, expected):
        end = time.monotonic() + PATIENCE_S
        while not all(state in expected for state in self.states(pids)):
            self.assertLess(time.monotonic(), end, self.states(pids))
            time.sleep(0.02)

    def test_stop_and_continue(self):
        # Not an orphaned process group: this test is its parent in another group of the session.
        process = subprocess.Popen(
            [BINARY, "run", "-n", "2", *sh("echo ready; exec sleep 1000")], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(**self.mark),
            preexec_fn=lambda: (default_signals(), os.setpgid(0, 0)))
        self.wait_for_line(process, 2)
        pids = [pid for pid in processes_with(self.mark)
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != "shmemctl-guard"]
        self.assertEqual(len(pids), 3)
        process.send_signal(signal.SIGTSTP)
        self.wait_for_states(pids, "T")
        process.send_signal(signal.SIGCONT)
        self.wait_for_states(pids, "SRD")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130)
        self.assert_no_orphan()


class Orphans(RunTest):
    GRANDCHILD = "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.2; done' & "

    def test_grandchildren_end_with_the_job(self):
        process = start("-n", 3, *sh(self.GRANDCHILD + "echo ready; sleep 0.2"), mark=self.mark)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0)
        self.assert_no_orphan()

    def test_grandchildren_end_with_a_failed_job(self):
        process = start("-n", 3, *sh(self.GRANDCHILD + "[ $SHMEMCTL_LOCAL_RANK = 0 ] && kill -9 $$; sleep 1000"),
                        mark=self.mark)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 137)
        self.assert_no_orphan()

    def test_launcher_that_is_killed_leaves_nobody(self):
        process = start("-n", 3, *sh(self.GRANDCHILD + "trap '' TERM HUP INT; echo ready; while :; do sleep 1; done"),
                        mark=self.mark)
        self.wait_for_line(process, 3)
        process.kill()
        process.wait(PATIENCE_S)
        self.assert_no_orphan()
        process.stdout.close()
        process.stderr.close()

    def test_every_pe_killed_from_outside(self):
        process = start("-n", 4, *sh("echo $$; exec sleep 1000"), mark=self.mark)
        pids = [int(line) for line in self.wait_for_line(process, 4)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 137)
        self.assert_no_orphan()

    def test_stopped_pe_ends_with_the_job(self):
        process = start("-n", 2, *sh("if [ $SHMEMCTL_LOCAL_RANK = 0 ]; then kill -STOP $$; fi; exit 5"),
                        mark=self.mark)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 5)
        self.assert_no_orphan()


class Terminal(RunTest):
    """A job whose stdin, stdout and stderr are a terminal."""

    def setUp(self):
        super().setUp()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            default_signals()
            environment = clean_environment(TERM="xterm", **self.mark)
            os.execve(BINARY, [BINARY, "run", "-n", "2", "--label", "sh", "-c",
                               "echo colour $SHMEMCTL_COLOR; read line && echo read $line; sleep 1000"],
                      environment)
        self.seen = b""

    def tearDown(self):
        os.close(self.master)

    def read_until(self, text):
        end = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            self.assertLess(time.monotonic(), end, self.seen)
            if select.select([self.master], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.master, 4096)
                except OSError:
                    self.fail(f"ended: {self.seen}")

    def test_typed_lines_reach_pe_0_and_ctrl_c_ends_all(self):
        self.read_until(b"[1] colour always")
        os.write(self.master, b"hello\n")
        self.read_until(b"[0] read hello")
        self.assertNotIn(b"[1] read", self.seen)
        os.write(self.master, b"\x03")
        _, status = os.waitpid(self.pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 130)
        self.assert_no_orphan()


if __name__ == "__main__":
    unittest.main()
