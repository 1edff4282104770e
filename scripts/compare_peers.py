#!/usr/bin/env python3
"""Measures shmemctl beside its peers on this machine, in one run, and prints Markdown for docs/results/peers.md.

    scripts/compare_peers.py [--rounds 3] [--shmemctl build/shmemctl] [--programs DIR] [--cpus 0,1]
                             [--json FILE] [--into docs/results/peers.md]

Peers, each left out with a line if it is not installed: UCX's ucx_perftest (package ucx-utils), Open
MPI's OpenSHMEM (oshcc) and one-sided MPI (mpicc; package libopenmpi-dev), and one OpenSHMEM program
linked with libshmemctl. The rounds of all are interleaved, so that a slow minute hits everyone; a cell
is the median over the rounds, in microseconds. The column `limit` is a plain memcpy into the same mapping,
bare ping-pongs of one cache line, or the processor's own fetch-add, measured by the same engine. Behind the
table are the goals with what was measured; those of the proxy and of registered buffers come from
bench_proxy and bench_buffers beside the binary. --into replaces what an earlier run put there."""
import argparse
import datetime
import json
import os
import pathlib
import platform
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


def lines_of(command, timeout_s=120):
    """What it printed. A peer that dies at its very end has still measured."""
    try:
        return subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout_s, check=False).stdout.splitlines()
    except subprocess.TimeoutExpired:
        say(f"{command[0]}: no end within {timeout_s} s")
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
        calls += [["put-pingpong", "cacheline-pingpong", "atomic-fetch-add", "bare-atomic", "barrier",
                   "-b", "8", "-e", "8"], ["put", "-b", "1M", "-e", "1M"]]
        for call in calls:
            done = subprocess.run([self.binary, "run", "-n", "2", "bench", *call, "--json", "-"],
                                  env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)
            if done.returncode not in (0, 1):
                say(done.stderr.strip())
                continue
            for row in json.loads(done.stdout)["results"]:
                self.take(row, found)
        return found

    @staticmethod
    def take(row, found):
        size = row["params"].get("size_bytes", 0)
        if row["status"] != "pass" or row["verified"] != "passed":
            say(f"{row['case']} {size}: {row['status']}, {row.get('reason')}: left out")
            return
        found[row["case"], size] = row["stats"]["p50"]
        if row.get("link_fraction") is not None:
            found[row["case"] + " of memcpy", size] = row["link_fraction"]


class Program:
    """A program of tests/peers under a launcher."""

    def __init__(self, name, command):
        self.name, self.command = name, command

    def measure(self):
        return figures(lines_of(self.command, 300))


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


def median(results, peer, case, size):
    """Of the rounds; None if there are none."""
    values = results.get(peer, {}).get((case, size))
    return statistics.median(values) if values else None


def limit_of(results, case, size):
    """What the machine does without a library, in microseconds; None if it was not measured."""
    by_case = {"put-latency": ("memcpy", size, 1), "get-latency": ("memcpy", size, 1),
               "put-pingpong": ("cacheline-pingpong", 8, 1), "atomic-fetch-add": ("bare-atomic", 8, 1),
               "barrier": ("cacheline-pingpong", 8, 2)}
    name, at, factor = by_case[case]
    one = median(results, OurBench.name, name, at) or median(results, OurBench.name, name, 0)
    return one and factor * one


def table(results, names):
    lines = ["| case | size | limit | " + " | ".join(names) + " |",
             "| --- | ---: | ---: | " + " | ".join("---:" for _ in names) + " |"]
    for case, size in ROWS:
        cells = [limit_of(results, case, size)] + [median(results, name, case, size) for name in names]
        text = " | ".join("-" if cell is None else f"{cell:.4f}" if cell < 0.1 else f"{cell:.3f}"
                          for cell in cells)
        lines.append(f"| {case} | {size or '-'} | {text} |")
    return "\n".join(lines)


def google_benchmarks(program, pattern, rounds):
    """{name: {"us": time, "per_s": items per second}}, medians of the rounds; {} without the program."""
    if not program.exists():
        say(f"no {program}: its goals are left out")
        return {}
    say(f"{program.name}")
    lines = lines_of([str(program), f"--benchmark_filter={pattern}", f"--benchmark_repetitions={rounds}",
                      "--benchmark_enable_random_interleaving=true", "--benchmark_format=json"], 600)
    try:
        runs = [run for run in json.loads("\n".join(lines))["benchmarks"]
                if run.get("aggregate_name") == "median"]
    except (ValueError, KeyError):
        say(f"{program}: no result")
        return {}
    scale = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
    # UseRealTime and UseManualTime put a suffix behind the name; their time is not the processor's.
    return {run["run_name"].removesuffix("/real_time"): {
        "us": run["real_time" if "_time" in run["run_name"] else "cpu_time"] * scale[run["time_unit"]],
        "per_s": run.get("items_per_second")} for run in runs}


def goals(results, folder, rounds):
    """(what, measured, goal, whether it is met); None where nothing was measured."""
    ours = OurBench.name
    found = {case: median(results, ours, case, 8) for case in ("put-pingpong", "atomic-fetch-add", "bare-atomic")}
    line = median(results, ours, "cacheline-pingpong", 8) or median(results, ours, "cacheline-pingpong", 0)
    barrier, share = median(results, ours, "barrier", 0), median(results, ours, "put of memcpy", 1 << 20)
    ucx = median(results, Ucx.name, "put-pingpong", 8)
    proxy = google_benchmarks(folder / "bench_proxy", "batch:1/|ping_pong|request_to", rounds)
    buffers = google_benchmarks(folder / "bench_buffers", "heap_to_heap/1048576|plain_to_registered/1048576", rounds)

    def compare(what, value, bound, words, at_most=True):
        if value is None or bound is None:
            return (what, None, words, None)
        return (what, value, words, value <= bound if at_most else value >= bound)

    def ratio(one, other):
        return None if not one or not other else one / other

    def rate(producers):
        names = [name for name in proxy if name.startswith(f"requests/producers:{producers}/batch:1/")]
        return proxy[names[0]]["per_s"] / 1e6 if names else None

    def time_of(programs, name):
        return programs.get(name, {}).get("us")

    request, there = time_of(proxy, "request_to_transport"), time_of(proxy, "cache_line_ping_pong")
    above = None if not request or not there else (request - there) * 1e3
    return [
        compare("put of 1 MiB, share of a memcpy beside it", share, 0.95, "at least 0.95", False),
        compare("put ping-pong of 8 bytes / bare cache line", ratio(found["put-pingpong"], line), 1.1, "at most 1.1"),
        compare("put ping-pong of 8 bytes / ucx_perftest", ratio(found["put-pingpong"], ucx), 1, "at most 1"),
        compare("fetch-add / bare atomic", ratio(found["atomic-fetch-add"], found["bare-atomic"]), 1.2, "at most 1.2"),
        compare("barrier of 2 PEs, µs", barrier, line and 2 * line + 0.1, "at most two bare messages + 0.1"),
        compare("proxy, one producer, million requests/s", rate(1), 10, "at least 10", False),
        compare("proxy, four producers, million requests/s", rate(4), 5, "at least 5", False),
        compare("request to the transport and back, ns above a ping-pong", above, 300, "at most 300"),
        compare("put of 1 MiB to a registered buffer, share of heap's speed",
                ratio(time_of(buffers, "heap_to_heap/1048576"), time_of(buffers, "plain_to_registered/1048576")),
                0.98, "at least 0.98", False)]


def goals_text(rows):
    lines = ["| goal | measured | asked for | |", "| --- | ---: | --- | --- |"]
    for what, value, words, met in rows:
        measured = "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
        lines.append(f"| {what} | {measured} | {words} | {'not measured' if met is None else 'met' if met else 'missed'} |")
    return "\n".join(lines)


def first_match(pattern, command):
    found = re.search(pattern, "\n".join(lines_of(command)))
    return found[1] if found else None


def circumstances(binary, rounds):
    """One sentence: where, when and with what these figures came to be."""
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        info = ""
    model = re.search(r"model name\s*:\s*(.+)", info)
    virtual = ", virtual machine" if re.search(r"^flags.*\bhypervisor\b", info, re.M) else ""
    versions = [("shmemctl", first_match(r"shmemctl (\S+)", [binary, "--version"])),
                ("Open MPI", shutil.which("mpirun") and first_match(r"Open MPI\)? (\S+)", ["mpirun", "--version"])),
                ("UCX", shutil.which("ucx_info") and first_match(r"(?:version|Version)[ =]+(\d[\d.]*)", ["ucx_info", "-v"]))]
    programs = ", ".join(f"{name} {version}" for name, version in versions if version)
    cpus = len(os.sched_getaffinity(0))
    return (f"{datetime.date.today().isoformat()}, {cpus} CPUs, {model[1] if model else platform.machine()}{virtual}, load "
            f"{os.getloadavg()[0]:.1f} at the start; {programs}; medians of {rounds} rounds, latency in µs. Get and put are "
            "complete at the end of each operation.")


def put_into(path, text):
    """Replaces what is between the two marks."""
    begin, end = "<!-- compare_peers: begin -->", "<!-- compare_peers: end -->"
    whole = path.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        sys.exit(f"compare_peers: {path} has no lines {begin} and {end}")
    head, tail = whole.split(begin)[0], whole.split(end)[1]
    path.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shmemctl", default=str(ROOT / "build" / "shmemctl"))
    parser.add_argument("--programs", help="folder of programs compiled before: ours, oshmem, mpi")
    parser.add_argument("--cpus", default="0,1", help="the two CPUs of ucx_perftest")
    parser.add_argument("--json", help="every figure of every round")
    parser.add_argument("--into", type=pathlib.Path, help="a file with the two marks of compare_peers")
    flags = parser.parse_args()
    if flags.rounds < 1:
        parser.error("--rounds takes 1 or more")
    where = circumstances(flags.shmemctl, flags.rounds)
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
    rows = goals(results, pathlib.Path(flags.shmemctl).parent, flags.rounds)
    text = "\n\n".join([where, table(results, [peer.name for peer in peers]), goals_text(rows)])
    print(text)
    if flags.into:
        put_into(flags.into, text)


if __name__ == "__main__":
    main()
