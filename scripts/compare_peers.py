#!/usr/bin/env python3
"""Measures shmemctl beside its peers on this machine, in one run, and prints a Markdown table.

    scripts/compare_peers.py [--rounds 3] [--shmemctl build/shmemctl] [--programs DIR] [--cpus 0,1] [--json FILE]

Peers, each left out with a line if it is not installed: UCX's ucx_perftest (package ucx-utils), Open
MPI's OpenSHMEM (oshcc) and one-sided MPI (mpicc; package libopenmpi-dev), and one OpenSHMEM program
linked with libshmemctl. The rounds of all are interleaved, so that a slow minute hits everyone; a cell
is the median over the rounds, in microseconds. The column `limit` is a plain memcpy into the same mapping,
a bare ping-pong of one cache line, or the processor's own fetch-add, measured by the same engine."""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "tests" / "peers"
SIZES = (8, 4096, 65536, 1048576, 4194304)
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1")
ROWS = ([("put-latency", size) for size in SIZES] + [("get-latency", size) for size in SIZES]
        + [("put-pingpong", 8), ("atomic-fetch-add", 8), ("barrier", 0)])


def say(text):
    print(text, file=sys.stderr, flush=True)


def lines_of(command, patience_s=120):
    """What it printed. A peer that dies at its very end has still measured."""
    try:
        return subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=patience_s, check=False).stdout.splitlines()
    except subprocess.TimeoutExpired:
        say(f"{command[0]}: no end within {patience_s} s")
        return []


def figures(lines):
    """{(case, size): median in microseconds} from lines such as "put-latency 8 0.0312"."""
    found = {}
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[1].isdigit():
            found[words[0], int(words[1])] = float(words[2])
    return found


class OurBench:
    name = "shmemctl bench"

    def __init__(self, binary):
        self.binary = binary

    def measure(self):
        found = {}
        calls = [[*cases, "-b", str(size), "-e", str(size)] for size in SIZES
                 for cases in (["put-latency", "get-latency"], ["memcpy", "--window", "1"])]
        calls.append(["put-pingpong", "cacheline-pingpong", "atomic-fetch-add", "bare-atomic", "barrier", "-b", "8", "-e", "8"])
        for call in calls:
            done = subprocess.run([self.binary, "run", "-n", "2", "bench", *call, "--json", "-"],
                                  env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)
            if done.returncode not in (0, 1):
                say(done.stderr.strip())
                continue
            for row in json.loads(done.stdout)["results"]:
                if row.get("stats"):
                    size = row["params"].get("size_bytes", 0)
                    found[row["case"], size] = row["stats"]["p50"]
        return found


class Program:
    """A program of tests/peers under a launcher."""

    def __init__(self, name, command):
        self.name, self.command = name, command

    def measure(self):
        return figures(lines_of(self.command))


class Ucx:
    name = "ucx_perftest"
    TESTS = ([("put-pingpong", 8, "ucp_put_lat"), ("atomic-fetch-add", 8, "ucp_fadd")]
             + [("get-latency", size, "ucp_get") for size in SIZES])

    def __init__(self, cpus):
        self.cpus = cpus

    def measure(self):
        found = {}
        for port, (case, size, test) in enumerate(self.TESTS, 13400):
            iterations = 200000 if size < 65536 else 2000
            common = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(iterations), "-f", "-p", str(port)]
            if test != "ucp_put_lat":
                common += ["-O", "1"]
            server = subprocess.Popen([*common, "-c", self.cpus[0]], env=ENVIRONMENT,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                for _ in range(50):  # the server has no way to say that it listens
                    client = subprocess.run([*common, "-c", self.cpus[1], "127.0.0.1"], env=ENVIRONMENT,
                                            capture_output=True, text=True, timeout=60, check=False)
                    if client.returncode == 0:
                        break
                    time.sleep(0.1)
            finally:
                server.kill()
                server.wait()
            numbers = re.findall(r"^(?:Final:)?\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", client.stdout, re.M)
            if numbers:
                found[case, size] = float(numbers[0][0])
        return found


def compiled(folder, compiler, source, name, *flags):
    """The program, compiled now or before (--programs); None if neither works."""
    if (pathlib.Path(folder) / name).exists():
        return str(pathlib.Path(folder) / name)
    if not shutil.which(compiler):
        return None
    target = pathlib.Path(folder) / name
    done = subprocess.run([compiler, "-O2", str(PEERS / source), *flags, "-o", str(target)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        say(f"{compiler} {source}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return str(target)


def contenders(binary, folder, cpus):
    yield OurBench(binary)
    library = pathlib.Path(binary).parent
    ours = compiled(folder, "cc", "shmem_rma.c", "ours", f"-I{library}/include", f"-L{library}", "-lshmemctl")
    if ours:
        yield Program("libshmemctl", [binary, "run", "-n", "2", ours])
    for name, compiler, source, file, launcher in (
            ("Open MPI OpenSHMEM", "oshcc", "shmem_rma.c", "oshmem", "oshrun"),
            ("Open MPI one-sided", "mpicc", "mpi_rma.c", "mpi", "mpirun")):
        program = compiled(folder, compiler, source, file)
        if program and shutil.which(launcher):
            yield Program(name, [launcher, "--bind-to", "core", "-n", "2", program])
        else:
            say(f"no {compiler} or no {launcher}: {name} is left out")
    if shutil.which("ucx_perftest"):
        yield Ucx(cpus)
    else:
        say("no ucx_perftest: UCX is left out")


def table(results, names):
    limits = {"put-latency": "memcpy", "get-latency": "memcpy", "put-pingpong": "cacheline-pingpong",
              "atomic-fetch-add": "bare-atomic", "barrier": "cacheline-pingpong"}
    ours = results["shmemctl bench"]
    lines = ["| case | size | limit | " + " | ".join(names) + " |",
             "| --- | ---: | ---: | " + " | ".join("---:" for _ in names) + " |"]

    def cell(values):
        return f"{statistics.median(values):.3f}" if values else "-"

    for case, size in ROWS:
        limit = cell(next((values for (name, at), values in ours.items()
                           if name == limits.get(case) and at in (size, 0)), []))
        lines.append(f"| {case} | {size or '-'} | {limit} | "
                     + " | ".join(cell(results[name].get((case, size), [])) for name in names) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shmemctl", default=str(ROOT / "build" / "shmemctl"))
    parser.add_argument("--programs", help="folder of programs compiled before: ours, oshmem, mpi")
    parser.add_argument("--cpus", default="0,1", help="the two CPUs of ucx_perftest")
    parser.add_argument("--json", help="every figure of every round")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        peers = list(contenders(flags.shmemctl, flags.programs or folder, flags.cpus.split(",")))
        results = {peer.name: {} for peer in peers}
        for number in range(flags.rounds):
            for peer in peers:
                say(f"round {number + 1} of {flags.rounds}: {peer.name}")
                for key, value in peer.measure().items():
                    results[peer.name].setdefault(key, []).append(value)
    if flags.json:
        rows = [{"peer": peer, "case": case, "size_bytes": size, "latency_us": values}
                for peer, found in results.items() for (case, size), values in found.items()]
        pathlib.Path(flags.json).write_text(json.dumps(rows, indent=1) + "\n")
    print(table(results, [peer.name for peer in peers]))


if __name__ == "__main__":
    main()
