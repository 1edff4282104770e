"""Runs one measurement of one program, and reads its figure: GB/s (10^9 bytes) or microseconds."""
import dataclasses
import json
import os
import re
import subprocess
import time

ENDED_S = 60


class Failed(Exception):
    """A program gave no figure; the text says why."""


@dataclasses.dataclass
class Figure:
    """What one run of a program measured."""
    value: float  # GB/s or us
    details: dict = dataclasses.field(default_factory=dict)


def environment(extra):
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", **extra}


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it printed nothing"


@dataclasses.dataclass
class OurBench:
    """`shmemctl run -n 2 bench CASE` at one size; verified, or no figure."""
    binary: str
    case: str
    size_bytes: int
    words: tuple = ()
    variables: dict = dataclasses.field(default_factory=dict)
    launch: tuple = ()

    def command(self):
        size = str(self.size_bytes)
        return [self.binary, "run", "-n", "2", *self.launch, "bench", self.case, "-b", size, "-e", size,
                "--symmetric-size", "64M", *self.words, "--json", "-"]

    def measure(self):
        try:
            done = subprocess.run(self.command(), env=environment(self.variables), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=ENDED_S, check=False)
        except subprocess.TimeoutExpired as expired:
            raise Failed(f"no end within {ENDED_S} s") from expired
        if done.returncode not in (0, 1):
            raise Failed(last_line(done.stderr.partition("shmemctl: fix")[0]))
        return self.read(json.loads(done.stdout))

    def read(self, report):
        row = report["results"][0]
        if row["status"] != "pass" or row["verified"] != "passed":
            raise Failed(f"{row['status']}, {row['verified']}: {row.get('reason')}")
        details = {key: row["params"][key] for key in ("window", "batch") if key in row["params"]}
        details["p50_us"] = row["stats"]["p50"]
        details["sent_by"] = sent_by_device(report.get("nic_counters") or [])
        value = row["stats"]["mean"] if "latency" in self.case or "pingpong" in self.case else row["bandwidth_GBps"]
        return Figure(value, details)


def sent_by_device(counters):
    """{"device counter": packets or bytes sent}, from the report's counters."""
    moved = {}
    for row in counters:
        if row["counter"] in ("sent_pkts", "port_xmit_data_bytes", "netdev_tx_bytes") and row["delta"]:
            moved[f"{row['device']} {row['counter']}"] = row["delta"]
    return moved


@dataclasses.dataclass
class PairOfPrograms:
    """A peer that is a server and a client; each bound to one CPU as our PEs are."""
    server: list
    client: list
    pattern: str  # its first group is the figure
    cpus: tuple
    scale: float = 1.0
    variables: dict = dataclasses.field(default_factory=dict)

    def measure(self):
        with subprocess.Popen(["taskset", "-c", self.cpus[0], *self.server], env=environment(self.variables),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            try:
                text = self.run_client(server)
            finally:
                server.kill()
        found = re.search(self.pattern, text, re.M)
        if not found:
            raise Failed(last_line(text))
        return Figure(float(found[1]) * self.scale)

    def run_client(self, server):
        """The server has no way to say that it listens, so a client that cannot connect tries again."""
        end = time.monotonic() + ENDED_S
        while True:
            try:
                done = subprocess.run(["taskset", "-c", self.cpus[1], *self.client],
                                      env=environment(self.variables), stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, check=False,
                                      timeout=max(end - time.monotonic(), 1))
            except subprocess.TimeoutExpired as expired:
                raise Failed(f"no end within {ENDED_S} s") from expired
            if done.returncode == 0:
                return done.stdout
            if server.poll() is not None or time.monotonic() > end:
                raise Failed(last_line(done.stderr or done.stdout))
            time.sleep(0.1)


def perftest(program, size_bytes, iterations, cpus, device="rxe0", depth=None):
    """ib_write_bw or ib_write_lat to this machine's own address, over the IPv4 GID and 4 KiB packets."""
    words = [program, "-d", device, "-x", "1", "-m", "4096", "-s", str(size_bytes), "-n", str(iterations), "-F"]
    if depth:
        words += ["-t", str(depth), "-N"]
        # MB/sec are 2^20 bytes.
        return PairOfPrograms(words, [*words, "10.77.0.1"], bandwidth_pattern(size_bytes), cpus, 2**20 / 1e9)
    return PairOfPrograms(words, [*words, "10.77.0.1"], latency_pattern(size_bytes), cpus)


def bandwidth_pattern(size_bytes):
    """#bytes #iterations peak average rate: the average is over all."""
    return rf"^\s*{size_bytes}\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+"


def latency_pattern(size_bytes):
    """#bytes #iterations min max typical average ...: the average, as ours is."""
    return rf"^\s*{size_bytes}\s+\d+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+([\d.]+)"


def ucx_perftest(test, size_bytes, iterations, warmup, cpus, variables, port=13500):
    words = ["ucx_perftest", "-t", test, "-s", str(size_bytes), "-n", str(iterations), "-w", str(warmup), "-f",
             "-p", str(port)]
    final = r"^(?:Final:)?\s+\d+\s+[\d.]+\s+[\d.]+\s+"
    if test.endswith("_lat"):
        return PairOfPrograms(words, [*words, "127.0.0.1"], final + r"([\d.]+)", cpus, 1, variables)
    # MB/s are 2^20 bytes; the second of the two is the whole run's.
    return PairOfPrograms(words, [*words, "127.0.0.1"], final + r"[\d.]+\s+[\d.]+\s+([\d.]+)", cpus, 2**20 / 1e9,
                          variables)
