"""`shmemctl run`: signals, a terminal, and that no process remains, however the job ends."""
import os
import pathlib
import pty
import select
import signal
import subprocess
import time
import unittest

from job_support import PATIENCE_S, RunTest, default_signals, processes_with, sh, start
from support import BINARY, clean_environment


class Signals(RunTest):
    def start_traps(self, names="INT TERM HUP USR1 USR2 QUIT"):
        """PEs that print which signal arrived, and end at TERM."""
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

    def test_each_signal_is_forwarded_once(self):
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

    def wait_until_taken(self, pid, number):
        """Until that signal is no longer pending."""
        end = time.monotonic() + PATIENCE_S
        while True:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            pending = [int(line.split()[1], 16) for line in status.splitlines()
                       if line.startswith(("SigPnd:", "ShdPnd:"))]
            if not any(mask >> (number - 1) & 1 for mask in pending):
                return
            self.assertLess(time.monotonic(), end, f"signal {number} is still pending")
            time.sleep(0.01)

    def test_second_interrupt_kills(self):
        process = start("-n", 2, *sh("trap '' INT TERM HUP; echo ready; while :; do sleep 0.1; done"),
                        mark=self.mark)
        self.wait_for_line(process, 2)
        process.send_signal(signal.SIGINT)
        # two pending signals of one kind would count as one
        self.wait_until_taken(process.pid, signal.SIGINT)
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

    def jobs_own_processes(self):
        found = []
        for pid in processes_with(self.mark):
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue
            if name != "shmemctl-guard":
                found.append(pid)
        return found

    def test_stop_and_continue(self):
        # Not an orphaned process group: this test is its parent in another group of the session.
        process = subprocess.Popen(
            [BINARY, "run", "-n", "2", *sh("echo ready; exec sleep 1000")], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(**self.mark),
            preexec_fn=lambda: (default_signals(), os.setpgid(0, 0)))
        self.wait_for_line(process, 2)
        end = time.monotonic() + PATIENCE_S
        pids = self.jobs_own_processes()
        while len(pids) != 3:  # the guard takes its name a moment after it is forked
            self.assertLess(time.monotonic(), end, pids)
            time.sleep(0.02)
            pids = self.jobs_own_processes()
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
