"""The start of a job on eight hosts, at several sizes: how long it takes, and what each PE sends for it.

The jobs end in the last phase of the start, its barrier, by an error that PE 0 is told to make: what is
counted is the start, and how an error ends it.

SHMEMCTL_START_PES are the PEs on each host (default 1,2,4; scripts/soak.sh: 1,4,16,64). What was measured is
printed, and is added to the file that SHMEMCTL_START_RESULTS names.
"""
import json
import math
import os
import pathlib
import time

import hosts_support
from hosts_support import HostsTest

SIZES = [int(word) for word in os.environ.get("SHMEMCTL_START_PES", "1,2,4").split(",")]
RESULTS = os.environ.get("SHMEMCTL_START_RESULTS")
#: Of one job: two cores start all processes.
LIMIT_S = 600
#: Memory of a PE: its part of the symmetric memory (18 MiB of the runtime, the heap), and its process. A guess:
#: a size that does not fit ends with the error of a PE.
MIB_PER_PE = 36
#: Starts PEs FIRST, FIRST+1, ... of a host at once, and returns the worst of their exit codes.
START = """first=$1 count=$2; shift 2; pids=
for pe in $(seq "$first" $((first + count - 1))); do
  SHMEMCTL_BOOTSTRAP_UID_RANK=$pe "$@" & pids="$pids $!"
done
worst=0
for pid in $pids; do wait "$pid" || worst=$?; done
exit $worst"""


def available_mib():
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    raise AssertionError("/proc/meminfo has no MemAvailable")


class Start(HostsTest):
    count = 8
    options = {"family": "4"}

    def tearDown(self):
        self.assert_nothing_left()

    def sent(self):
        """(bytes, packets) that all hosts have sent so far, to other hosts and within each."""
        total = [0, 0]
        for host in self.cluster.all:
            for line in pathlib.Path(f"/proc/{host.pid}/net/dev").read_text(encoding="ascii").splitlines()[2:]:
                words = line.partition(":")[2].split()
                total[0] += int(words[8])
                total[1] += int(words[9])
        return total

    def start_job(self, pes_per_host, *arguments):
        size = pes_per_host * len(self.cluster.all)
        variables = {"SHMEMCTL_BOOTSTRAP": "uid", "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID": f"{self.first.key}:5000",
                     "SHMEMCTL_BOOTSTRAP_UID_SIZE": size, "SHMEMCTL_BOOTSTRAP_UID_SECRET": "of these hosts alone",
                     "SHMEMCTL_SYMMETRIC_SIZE": "4M", "SHMEMCTL_TIMEOUT": LIMIT_S, "SHMEMCTL_FAULT": "error:0:barrier"}
        return [host.start_command("sh", "-c", START, "-", number * pes_per_host, pes_per_host, "shmemctl", *arguments,
                                   **variables) for number, host in enumerate(self.cluster.all)]

    def measure(self, pes_per_host):
        path = self.report_path()
        before, begin = self.sent(), time.monotonic()
        ends = [command.wait(LIMIT_S)
                for command in self.start_job(pes_per_host, "bringup", "--json", path)]
        taken_s = time.monotonic() - begin
        self.assertEqual({done.code for done in ends}, {3}, ends[0])
        after = self.sent()
        report = json.loads(path.read_text(encoding="utf-8"))
        size = pes_per_host * len(self.cluster.all)
        self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (size, len(self.cluster.all)))
        self.assertEqual(report["phases"][-1]["name"], "barrier", report["phases"])
        phases = {phase["name"]: phase["time_ms"] / 1e3 for phase in report["phases"]}
        return {"pes": size, "start_s": round(sum(phases.values()), 2), "job_s": round(taken_s, 2),
                "bytes_per_pe": (after[0] - before[0]) // size, "packets_per_pe": (after[1] - before[1]) // size,
                "phases_s": {name: round(value, 2) for name, value in phases.items() if value > 0.05}}

    def test_what_a_pe_sends_grows_slowly(self):
        """Rounds are log2 of the PEs; in an allgather a PE passes on what it has heard of all others."""
        found = []
        for pes_per_host in SIZES:
            size = pes_per_host * len(self.cluster.all)
            if found and size * MIB_PER_PE > available_mib():
                print(f"start: {size} PEs were not started: they take about {size * MIB_PER_PE} MiB of memory, "
                      f"{available_mib()} are there", flush=True)
                continue
            found.append(self.measure(pes_per_host))
            print(f"start: {found[-1]}", flush=True)
            self.assert_nothing_left()
            if RESULTS:
                with open(RESULTS, "a", encoding="utf-8") as file:
                    file.write(json.dumps(found[-1]) + "\n")
        small = found[0]
        for large in found[1:]:
            times = large["pes"] / small["pes"]
            rounds = math.log2(large["pes"]) / math.log2(small["pes"])
            # Not as all with all would: times as many packets, each PE to all others.
            self.assertLess(large["packets_per_pe"], small["packets_per_pe"] * rounds * math.sqrt(times) * 2, found)
            self.assertLess(large["bytes_per_pe"], small["bytes_per_pe"] * times * 2, found)


if __name__ == "__main__":
    hosts_support.main()
