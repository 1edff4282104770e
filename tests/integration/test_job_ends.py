"""How a job starts without RDMA, and the errors when a signal or a limit ends it."""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from support import BINARY, clean_environment, error_lines, run
from test_uid import finish, free_port

SMALL = {"SHMEMCTL_SYMMETRIC_SIZE": "64M"}
PATIENCE_S = 300


def usable_here():
    """The lines of `env` about each transport that auto tries, in order."""
    code, out, err = run("env")
    assert code == 0, err
    return dict(re.findall(r"(?m)^\W*(ibrc|libfabric|ucx)\s.*?\b(not usable|usable): ", out))


def has_thread(pid, name):
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            if path.read_text().strip() == name:
                return True
        except OSError:
            pass
    return False


def cpu_time_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Fallback(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.usable = usable_here()

    def test_env_shows_which_transports_are_usable(self):
        self.assertEqual(list(self.usable), ["ibrc", "libfabric", "ucx"])

    def first_usable(self):
        name = next((name for name, words in self.usable.items() if words == "usable"), None)
        if name is None:
            self.skipTest("no network transport is usable here")
        return name

    def test_a_job_over_nodes_takes_the_first_that_works(self):
        name = self.first_usable()
        code, out, err = run("run", "-n", 2, "--nodes", 2, "bench", "put", "--quick", "--json", "-", env=SMALL)
        self.assertEqual(code, 0, err)
        document = json.loads(out)
        self.assertEqual({row["verified"] for row in document["results"]}, {"passed"})
        fallback = [f for f in document["findings"] if f["id"] == "transport-fallback"]
        self.assertEqual(len(fallback), 0 if name == "ibrc" else 1)
        for finding in fallback:
            self.assertIn(f"by {name} (not ibrc: PE ", finding["message"])

    def test_a_requested_transport_is_not_replaced_and_the_fix_works(self):
        name = self.first_usable()
        if name == "ibrc":
            self.skipTest("there is an RDMA device here")
        bench = ("run", "-n", 2, "--nodes", 2, "bench", "put", "--quick", "-e", "8")
        code, _, err = run(*bench, "--remote-transport", "ibrc", env=SMALL)
        self.assertEqual(code, 3)
        fixes = re.findall(r"fix: set (--remote-transport \w+), which reaches all pairs", err)
        self.assertTrue(fixes, err)
        code, _, err = run(*bench, *fixes[0].split(), env=SMALL)
        self.assertEqual(code, 0, err)
        code, out, _ = run("run", "-n", 2, "--nodes", 2, "bringup", "--remote-transport", "ibrc", "--json", "-",
                           env=SMALL)
        self.assertEqual(code, 1)
        finding = next(f for f in json.loads(out)["findings"] if f["id"] == "pair-unreachable")
        self.assertEqual(finding["fix"], f"set {fixes[0]}, which reaches all pairs")


class Interrupted(unittest.TestCase):
    """PEs without a launcher that would end them together."""

    def start(self, folder, n_pes=3):
        port = free_port()
        processes = []
        for rank in range(n_pes):
            environment = clean_environment(
                **SMALL, SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=f"127.0.0.1:{port}",
                SHMEMCTL_BOOTSTRAP_UID_SECRET="open sesame", SHMEMCTL_BOOTSTRAP_UID_RANK=str(rank),
                SHMEMCTL_BOOTSTRAP_UID_SIZE=str(n_pes))
            processes.append(subprocess.Popen(
                [BINARY, "bench", "put", "-D", "200", "--timeout", "200", "--json", f"{folder}/report.json"],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.addCleanup(lambda: [p.kill() for p in processes])
        end = time.monotonic() + PATIENCE_S
        # Puts that are measured take processor time, of which bringing the job up takes little.
        while cpu_time_s(processes[0].pid) < 2 or not all(has_thread(p.pid, "failures") for p in processes):
            self.assertLess(time.monotonic(), end, "the measurement did not begin")
            self.assertEqual([p.poll() for p in processes], [None] * n_pes)
            time.sleep(0.01)
        return processes

    def aborted(self, folder):
        document = json.loads(pathlib.Path(folder, "report.json").read_text())
        self.assertEqual(document["status"], "incomplete")
        return [f["message"] for f in document["findings"] if f["id"] == "run-aborted"]

    def test_the_others_hear_which_signal_it_was(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number.name), tempfile.TemporaryDirectory() as folder:
                processes = self.start(folder)
                processes[1].send_signal(number)
                ends = finish(processes)
                self.assertEqual(ends[1][0], 130, ends[1][2])
                for code, _, err in (ends[0], ends[2]):
                    self.assertEqual(code, 130, err)
                    self.assertRegex(error_lines(err)[0], rf"PE 1 \(host .*\) was interrupted by {number.name}")
                    self.assertNotIn("was lost", err)
                self.assertRegex(self.aborted(folder)[0], f"PE 1 .* was interrupted by {number.name}")

    def test_a_lost_pe_is_the_cause_also_if_a_signal_follows(self):
        with tempfile.TemporaryDirectory() as folder:
            processes = self.start(folder)
            processes[2].kill()
            processes[0].terminate()
            finish(processes)
            self.assertRegex(self.aborted(folder)[0], r"PE 2 .*was lost")


class Limits(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "another user's limit of processes is needed")
    def test_process_limit(self):
        def as_nobody():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            os.setgid(65534)
            os.setuid(65534)
        try:
            # LeakSanitizer looks for leaks from a process of its own, which the limit forbids.
            done = subprocess.run([BINARY, "topo"], env=clean_environment(ASAN_OPTIONS="detect_leaks=0"),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd="/",
                                  preexec_fn=as_nobody)
        except PermissionError:
            self.skipTest("nobody cannot run the binary")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Resource temporarily unavailable", error_lines(done.stderr)[0])
        self.assertIn("ulimit -u", done.stderr)
        self.assertNotIn("bug", done.stderr)

    def put_over_ucx(self, n_pes, limit):
        """@param limit a shell's command"""
        job = [BINARY, "run", "-n", str(n_pes), "--nodes", "2", "bench", "put", "-b", "8", "-e", "8", "-n", "10",
               "--remote-transport", "ucx", "--timeout", "100"]
        return subprocess.run(["sh", "-c", f'{limit} && exec "$@"', "sh", *job], env=clean_environment(**SMALL),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S)

    def test_open_file_limit(self):
        """UCX ends the process when it has no descriptor left for a socket."""
        if usable_here()["ucx"] != "usable":
            self.skipTest("UCX cannot be used here")
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
            self.skipTest("no limit of 4096 open files can be set here")
        for n_pes in (2, 4):
            with self.subTest(n_pes=n_pes):
                done = self.put_over_ucx(n_pes, "ulimit -n 32")
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertRegex(error_lines(done.stderr)[0], "UCX.*: the limit of open files is 32, which leaves "
                                                              "room for [0-9]+ more")
                self.assertNotRegex(done.stderr, "Fatal|signal 6|Aborted")
                fix = re.search(r"(?m)^shmemctl: fix: raise the hard limit: (ulimit -n [0-9]+)$", done.stderr)
                self.assertTrue(fix, done.stderr)
                done = self.put_over_ucx(n_pes, fix.group(1))
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_open_file_limit_that_can_be_raised(self):
        """The soft limit is no fault: the program raises it."""
        if usable_here()["ucx"] != "usable":
            self.skipTest("UCX cannot be used here")
        done = self.put_over_ucx(2, "ulimit -S -n 32")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
