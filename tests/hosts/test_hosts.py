"""The test hosts themselves: what they show, what is done to them, and that nothing of them is left."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import hosts_support
from hosts_support import BINARY, LAB, Cluster, ClusterOptions, HostsTest, hosts_of

PATIENCE_S = 120


def run(*words, timeout=PATIENCE_S):
    return subprocess.run([LAB / "hosts", "--binary", BINARY, *map(str, words)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=timeout, check=False)


def names_of_processes():
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


class Hosts(HostsTest):
    count = 3
    hosts = {"interfaces": ("eth0", "ib0"), "mtus": (1500, 9000), "docker": True, "rails": 1}

    @classmethod
    def setUpClass(cls):
        # A folder where hosts have a /tmp of their own, as a checkout may be.
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        cls.addClassCleanup(folder.cleanup)
        cls.kept = pathlib.Path(folder.name)
        (cls.kept / "file").write_text("of the machine\n", encoding="ascii")
        cls.options = {"visible": [cls.kept]}
        super().setUpClass()

    def said(self, key, *words):
        return self.cluster.host(key).must_run("cannot look", *words)

    def test_each_is_a_host_of_its_own(self):
        for key in "abc":
            self.assertEqual(self.said(key, "hostname"), f"{key}\n")
        for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
            self.assertEqual(len({self.said(key, "cat", path) for key in "abc"}), 3, path)
        self.said("a", "touch", "/dev/shm/mine", "/tmp/mine")
        self.assertNotIn("mine", self.said("b", "ls", "/dev/shm", "/tmp"))
        self.assertFalse(pathlib.Path("/dev/shm/mine").exists() or pathlib.Path("/tmp/mine").exists())
        self.assertEqual(self.cluster.left(), {"a": ["/dev/shm/mine"]})

    def test_interfaces(self):
        self.assertEqual(sorted(self.said("b", "ls", "/sys/class/net").split()), ["docker0", "ib0", "lo", "rail1"])
        self.assertEqual(self.said("a", "cat", "/sys/class/net/eth0/mtu", "/sys/class/net/docker0/mtu"), "1500\n1500\n")
        self.assertEqual(self.said("c", "cat", "/sys/class/net/ib0/mtu"), "9000\n")

    def test_the_machine_cannot_be_written_to(self):
        self.assertEqual(self.said("b", "cat", self.kept / "file"), "of the machine\n")
        for path in ("/usr/new", "/etc/new", f"{hosts_support.SOURCE}/new", f"{self.kept}/new", f"{self.kept}/file"):
            done = self.first.run("touch", path)
            self.assertNotEqual(done.code, 0, path)
            self.assertIn("Read-only", done.err)

    def test_ssh(self):
        self.assertEqual(self.said("a", "ssh", "b", "hostname; command -v shmemctl"), "b\n/run/lab/bin/shmemctl\n")

    def test_what_a_job_leaves_is_seen(self):
        command = self.first.start_command("sleep", "1000")
        self.wait_until(lambda: self.cluster.left(), "the process is there")
        self.assertEqual(self.cluster.left(), {"a": ["process sleep 1000"]})
        self.assertEqual(command.wait(0).code, None)
        self.assert_nothing_left()

    def reaches(self, source, target):
        return self.cluster.host(source).run("timeout", "2", "bash", "-c", f"</dev/tcp/{target}/22").code == 0

    def test_cables(self):
        self.assertTrue(self.reaches("a", "b"))
        self.cluster.link("b", "down")
        self.assertFalse(self.reaches("a", "b"))
        self.assertTrue(self.reaches("a", "c"))
        self.cluster.link("b", "up")
        self.wait_until(lambda: self.reaches("a", "b"), "the cable is back")
        self.cluster.cable("b", "to c loss 100%")
        self.assertTrue(self.reaches("a", "b"))
        self.assertFalse(self.reaches("c", "b"))
        self.cluster.cable("b", "delay 150ms")
        begin = time.monotonic()
        self.assertTrue(self.reaches("a", "b"))
        self.assertGreater(time.monotonic() - begin, 0.3)
        self.cluster.cable("b")
        self.assertTrue(self.reaches("c", "b"))


class Program(unittest.TestCase):
    def test_a_command(self):
        done = run("--hosts", 2, "--", "hostname; exit 5")
        self.assertEqual((done.returncode, done.stdout), (5, "a\n"), done.stderr)

    def test_things_that_happen(self):
        done = run("--hosts", 2, "--family", "4", "--at", "0.5", "b down", "--at", "2.5s", "b up", "--",
                   "sleep 1; ! timeout 1 bash -c '</dev/tcp/b/22' && sleep 2 && timeout 10 bash -c '</dev/tcp/b/22'")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_deadline(self):
        done = run("--hosts", 2, "--timeout", 1, "--", "sleep 1000")
        self.assertEqual(done.returncode, 124)
        self.assertRegex(done.stderr, r"\Alab: error: the command still ran after 1 s [^\n]*\nlab: fix: [^\n]+\n\Z")

    def test_mistakes(self):
        for words in (("--hosts", 9), ("--cable", "x", "loss 1%"), ("--cable", "b", "loss 1"), ("--rate", "b", "fast"),
                      ("--at", "3s", "b explodes"), ("--binary", "/no/such/file")):
            done = run(*words, "--", "true")
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, r"\Alab: error: [^\n]+\nlab: fix: [^\n]+\n\Z")

    def test_nothing_is_left_when_it_is_killed(self):
        mark = f"sleep 98765{os.getpid()}"
        with tempfile.TemporaryDirectory(prefix="hosts-cwd.") as folder:
            before = set(os.listdir(tempfile.gettempdir()))
            started = subprocess.Popen([LAB / "hosts", "--hosts", "3", "--binary", BINARY, "--", mark], cwd=folder,
                                       stdin=subprocess.DEVNULL)
            end = time.monotonic() + PATIENCE_S
            while not any(name.startswith(mark) for name in names_of_processes()):
                self.assertLess(time.monotonic(), end, "the command runs")
                time.sleep(0.05)
            started.send_signal(signal.SIGKILL)
            started.wait()
            while left := [name for name in names_of_processes() if name.startswith(mark) or "host_init.sh" in name]:
                self.assertLess(time.monotonic(), end, left)
                time.sleep(0.05)
            self.assertEqual({name for name in set(os.listdir(tempfile.gettempdir())) - before
                              if name.startswith("hosts.")}, set())
        interfaces = os.listdir("/sys/class/net")
        self.assertFalse([name for name in interfaces if name in ("br0", "sw1", "sw2", "sw3")], interfaces)

    def test_eight_hosts(self):
        with Cluster(ClusterOptions(hosts_of(8), binary=BINARY)) as cluster:
            self.assertEqual([host.key for host in cluster.all], list("abcdefgh"))
            self.assertEqual(cluster.host("h").must_run("cannot reach a", "ssh", "a", "hostname"), "a\n")


if __name__ == "__main__":
    hosts_support.main()
