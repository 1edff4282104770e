"""inspect over a job: processes of all hosts, and the rank on another one that all wait for."""
import json

import hosts_support
from hosts_support import Hydra, HostsTest, OpenMpi, Srun

# A rank as far as inspect knows it: variables of its launcher, a communication library, a state.
RANK = ("import ctypes, os, signal, sys, time\n"
        "ctypes.CDLL('libibverbs.so.1')\n"
        "print('ready', flush=True)\n"
        "if sys.argv[1] == 'stops': os.kill(os.getpid(), signal.SIGSTOP)\n"
        "end = time.monotonic() + 150\n"
        "while time.monotonic() < end: time.sleep(0.1)\n")


class InspectJob(HostsTest):
    count = 2
    slurm = True

    def start_ranks(self):
        """Two ranks on each host, of which rank 3, on b, is stopped."""
        for rank in range(4):
            host = self.cluster.host("ab"[rank // 2])
            host.start_command("/usr/bin/python3", "-c", RANK, "stops" if rank == 3 else "runs", RANK=rank, WORLD_SIZE=4,
                               LOCAL_RANK=rank % 2, LOCAL_WORLD_SIZE=2, MASTER_ADDR="a", MASTER_PORT=29500,
                               NCCL_DEBUGG="INFO")

    def looked_at(self, launcher, *arguments):
        path = self.report_path()
        done = self.start(launcher, {"a": 1, "b": 1}, "inspect", "--all", *arguments, "--json", path).wait(
            hosts_support.PATIENCE_S)
        self.assertEqual(done.code, 0, done)
        return done, json.loads(path.read_text(encoding="utf-8"))

    def check_launcher(self, launcher):
        self.start_ranks()

        def all_there():
            _, report = self.looked_at(launcher)
            ranks = {entry["rank"]: entry for entry in report.get("processes", []) if entry.get("name", "").startswith("python")
                     and "rank" in entry}
            stopped = ranks.get(3, {}).get("activity", {}).get("state") == "stopped"
            return report if sorted(ranks) == [0, 1, 2, 3] and stopped else None
        report = self.wait_until(all_there, "the four ranks", 120)
        self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (2, 2))
        hosts = {entry["rank"]: entry["host"] for entry in report["processes"] if "rank" in entry
                 and entry["name"].startswith("python")}
        self.assertEqual(hosts, {0: "a", 1: "a", 2: "b", 3: "b"})
        awaited = [each for each in report["findings"] if each["id"] == "rank-awaited"
                   and each["subject"] == "MASTER_ADDR a:29500"]
        self.assertEqual(len(awaited), 1, report["findings"])
        self.assertRegex(awaited[0]["message"], r"^rank 3, PID \d+ \(python3\S*\) on b, is stopped")
        # inspect's own PEs are not among the processes.
        self.assertNotIn("shmemctl", {entry.get("name") for entry in report["processes"]})

    def test_open_mpi(self):
        self.check_launcher(OpenMpi())

    def test_hydra(self):
        self.check_launcher(Hydra())

    def test_srun(self):
        self.check_launcher(Srun("pmi2"))


if __name__ == "__main__":
    hosts_support.main()
