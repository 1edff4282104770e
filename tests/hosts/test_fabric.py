"""`shmemctl fabric` on networks with one fault each: it names that part, and nothing else.

All cables are limited to a rate that two cores carry, so that the network is what is measured, and not the
cores. Each run plants its fault at another host. SHMEMCTL_FABRIC_RUNS says how many runs there are of each
fault (scripts/soak.sh: 20); what came of them is printed, and is added to the file that
SHMEMCTL_FABRIC_RESULTS names. Where other work leaves so little of the cores that sound pairs have not half of
their rate, the planted limit is none: such a run is made again, and counts only if it names a part without a
fault.
"""
import dataclasses
import json
import os
import re
import time

import hosts_support
from hosts_support import HostsTest, OpenMpi

RUNS = int(os.environ.get("SHMEMCTL_FABRIC_RUNS", "1"))
RESULTS = os.environ.get("SHMEMCTL_FABRIC_RESULTS")
USUAL, SLOW = "200mbit", "100mbit"
#: What the fastest quarter of the pairs must have: 60% of USUAL.
LEAST_GBPS = 0.6 * 200e6 / 8 * 1e-9
#: Neither says that a part is slow.
HARMLESS = ("fabric-transient",)
NOISE = re.compile(r"noise ([0-9.]+)%")


@dataclasses.dataclass
class Tally:
    """What the runs of one fault have named."""
    runs: int = 0
    right: int = 0   # the part that has the fault
    exact: int = 0   # of these, with the right kind of fault
    silent: int = 0  # nobody
    busy: int = 0    # nobody, and the cores were the limit: not among the runs
    other: int = 0   # a part that has no fault
    seconds: float = 0
    wrong: list = dataclasses.field(default_factory=list)

    def line(self, fault):
        return (f"fabric: {fault}: {self.runs} runs, {self.right} right ({self.exact} with the right kind), "
                f"{self.silent} named nobody, {self.other} named another; {self.seconds / max(self.runs + self.busy, 1):.1f} s "
                f"each; {self.busy} more on a busy machine")


class FabricTest(HostsTest):
    """Runs on hosts whose cables all have one rate, with one fault more."""
    pes_per_host = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.keys = [host.key for host in cls.cluster.all]
        for key in cls.keys:
            cls.good(key)

    @classmethod
    def good(cls, key):
        """The cables of a host as they are without a fault."""
        for rail in range(cls.pes_per_host):
            cls.cluster.rate(key, USUAL, rail)

    def tearDown(self):
        self.assert_nothing_left()

    def words(self):
        """The command of each PE: those of one rail use one network."""
        return ("shmemctl",)

    def measure(self):
        """(Finished, report) of one run."""
        path = self.report_path()
        pes = {key: self.pes_per_host for key in self.keys}
        command = [*OpenMpi().command(pes), *self.words(), "fabric", "--json", path]
        done = self.first.start_command(*command, **hosts_support.SMALL).wait(hosts_support.PATIENCE_S)
        self.assertIn(done.code, (0, 1), done)
        return done, json.loads(path.read_text(encoding="utf-8"))

    @staticmethod
    def named(report):
        """[(id, subject)] of what is called slow, by bandwidth or latency."""
        return [(finding["id"], finding["subject"]) for finding in report["findings"]
                if finding["id"].startswith("fabric-") and finding["id"] not in HARMLESS]

    def check(self, fault, plant, heal, is_it, kinds):
        """Runs `plant(i)`, fabric, `heal(i)` again and again. `is_it(i, subject)`: whether that is the part that
        was planted; `kinds`: what of "ID SUBJECT" says, by a pattern, what is wrong with it. Without is_it
        nothing may be named."""
        if OpenMpi().why_not():
            self.skipTest(OpenMpi().why_not())
        tally = Tally()
        i = 0
        while i < RUNS and tally.busy <= RUNS + 1:
            plant(i)
            begin = time.monotonic()
            try:
                done, report = self.measure()
            finally:
                heal(i)
            tally.seconds += time.monotonic() - begin
            named = self.named(report)
            rate = self.fast_pairs(report)
            print(f"run {i}: {named}, exit {done.code}, noise {NOISE.search(done.out).group(1)}%, fast pairs "
                  f"{rate:.4f} GB/s", flush=True)
            if is_it and not named and rate < LEAST_GBPS:
                tally.busy += 1
                continue
            i += 1
            tally.runs += 1
            self.count_run(tally, i - 1, named, is_it, kinds, done)
        print(tally.line(fault), flush=True)
        if RESULTS:
            row = {key: value for key, value in dataclasses.asdict(tally).items() if key != "wrong"}
            with open(RESULTS, "a", encoding="utf-8") as file:
                file.write(json.dumps({"fault": fault, "hosts": len(self.keys), "nics": self.pes_per_host, **row}) + "\n")
        said = "\n".join(f"run {i}: {named}\n{done}" for i, named, done in tally.wrong)
        self.assertEqual((tally.right, tally.other), (tally.runs, 0), f"{tally.line(fault)}\n{said}")
        if tally.runs < RUNS:
            self.skipTest(f"the machine is too busy: {tally.line(fault)}")

    @staticmethod
    def fast_pairs(report):
        """What the fastest quarter of the pairs has at least, in GB/s."""
        rates = sorted(row["bandwidth_GBps"] for row in report["results"] if row["case"] == "fabric-pair")
        return rates[len(rates) * 3 // 4]

    def count_run(self, tally, i, named, is_it, kinds, done):
        right = [(name, subject) for name, subject in named if is_it and is_it(i, subject)]
        found = bool(right) and done.code == 1 if is_it else not named and done.code == 0
        tally.right += found
        tally.exact += found and (not is_it or any(re.match(kinds, f"{name} {subject}") for name, subject in right))
        tally.silent += not named and not found
        tally.other += len(right) < len(named)
        if len(right) < len(named) or not found:
            tally.wrong.append((i, named, done))


class OneNic(FabricTest):
    count = 4
    options = {"family": "4"}

    def host(self, i):
        """The culprit of run i."""
        return self.keys[(i + 2) % len(self.keys)]

    def partner(self, i):
        return self.keys[(i + 2 + 1 + i // len(self.keys) % (len(self.keys) - 1)) % len(self.keys)]

    def is_host(self, i, subject):
        return subject == self.host(i)

    def test_a_healthy_network(self):
        self.check("none", lambda i: None, lambda i: None, None, "")

    def test_a_slow_host(self):
        self.check("slow host", lambda i: self.cluster.rate(self.host(i), SLOW), lambda i: self.good(self.host(i)),
                   self.is_host, "fabric-slow-host")

    def test_a_one_way_limit(self):
        """In every second run it receives slowly, in the others it sends slowly."""
        self.check("one-way limit", lambda i: self.cluster.rate(self.host(i), f"{('out', 'in')[i % 2]} {SLOW}"),
                   lambda i: self.good(self.host(i)), self.is_host, "fabric-one-way")

    def test_a_slow_pair(self):
        def plant(i):
            for way in ("to", "from"):
                self.cluster.rate(self.host(i), f"{way} {self.partner(i)} {SLOW}", others=USUAL)

        def is_it(i, subject):
            # "b eth0 <-> c eth0 (PE 1, PE 2)"
            return "->" in subject and {word for word in subject.split() if word in self.keys} == {
                self.host(i), self.partner(i)}
        self.check("slow pair", plant, lambda i: self.good(self.host(i)), is_it, "fabric-slow-pair .*<->")

    def test_a_cable_that_loses_packets(self):
        self.check("1% loss on a cable", lambda i: self.cluster.lose(self.host(i), 0.01),
                   lambda i: self.cluster.lose(self.host(i), 0), self.is_host,
                   "fabric-(lossy|slow-host|one-way)")


class TwoNics(FabricTest):
    """Two networks: one PE of each host uses rail0, one rail1."""
    count = 4
    pes_per_host = 2
    hosts = {"interfaces": ("rail0",), "rails": 1}
    options = {"family": "4"}

    def words(self):
        return ("sh", "-c", 'SHMEMCTL_LIBFABRIC_INTERFACE=rail$OMPI_COMM_WORLD_LOCAL_RANK exec shmemctl "$@"', "-")

    def test_a_healthy_network(self):
        self.check("none, two NICs", lambda i: None, lambda i: None, None, "")

    def test_a_slow_nic(self):
        def host(i):
            return self.keys[(i // 2 + 1) % len(self.keys)]
        # "b rail1 (rail 1, PE 3)"
        self.check("slow NIC of two", lambda i: self.cluster.rate(host(i), SLOW, i % 2), lambda i: self.good(host(i)),
                   lambda i, subject: subject.startswith(f"{host(i)} ") and f"(rail {i % 2}," in subject
                   and "->" not in subject, "fabric-slow-nic")


if __name__ == "__main__":
    hosts_support.main()
