#!/usr/bin/env python3
"""Measures `shmemctl bench` on GPUs beside NVSHMEM and NCCL, in turns, on the same GPUs in one run.

    scripts/compare_gpu.py [GROUP...] [--pes N] [--rounds 5] [--quick] [--shmemctl build/shmemctl] [--json FILE]
                           [--report FILE]

Groups (all of them, if none is named): bandwidth, latency (one thread), warp, block (the same by a warp or block),
stream (operations on streams, launches included), kernel (collectives inside of kernels), sweep (bandwidth by few
blocks, all GPUs putting at once, in pairs), exchange (alltoall of 1 MiB, 64 MiB and 1 GiB of each PE).

--pes: one PE for each GPU; all GPUs up to four, if it is not given. Figures of one pair are those of the first two.

NVSHMEM  its device API: tests/peers/nvshmem_gpu.cu, compiled here with nvcc against the package nvidia-nvshmem, if
         both are there
NCCL     through torch.distributed (tests/peers/nccl_gpu.py), if PyTorch can be imported

Programs take turns, round by round, every other round backwards. A figure is the median of the rounds, with the
smallest and the largest. Ours are verified, or there is none; each peer says what it compares. --quick: three rounds
of short measurements. Exit code: 0 if it ran; 1 if one of our own figures is missing; 3 without two GPUs."""
import argparse
import glob
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from compare import gpu_report, gpu_table
from compare.gpu_cases import GROUPS, NAMES, SHAPES, case_of, key_of, order_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "tests" / "peers"
NO_GPUS = 3
PEER_S = 240
MOST_PES = 4


class Failed(Exception):
    """A program gave no figures; the text says why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def block_bytes(of_a_pe, n_pes):
    """Of a PE's blocks to all: as the peers' programs have it."""
    return of_a_pe // n_pes // 256 * 256


def pes_of(wanted, n_gpus):
    """PEs of a comparison, one for each GPU."""
    n_pes = wanted or min(n_gpus, MOST_PES)
    if n_pes > n_gpus:
        raise Failed(f"--pes {n_pes} takes as many GPUs, and nvidia-smi shows {n_gpus}")
    return n_pes


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": values}


def figure_of(row):
    """(value, unit) of a row of the report; nothing if it failed."""
    if row["status"] != "pass" or row["verified"] != "passed":
        return None
    if row["case"] in ("put", "get"):
        return row["bandwidth_GBps"], "GB/s"
    return row["stats"]["p50"], "us"


def read_report(report):
    """{(case, size): (value, unit)}; Failed for a row that is wrong."""
    figures = {}
    for row in report["results"]:
        figure = figure_of(row)
        if figure is None or figure[0] is None:
            raise Failed(f"{row['case']}: {row['status']}, {row['verified']}: {row.get('reason')}")
        figures[key_of(row["case"], row["params"].get("size_bytes", 0))] = figure
    return figures


def read_lines(text):
    """Of a peer: its version, figures as above, and {(case, size): what it has compared}; "" is nothing."""
    figures, compared, version = {}, {}, "unknown"
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if "version" in row:
            version = row["version"]
        else:
            key = key_of(row["name"], row["size_bytes"])
            figures[key] = (row["value"], row["unit"])
            compared[key] = row.get("compared", "")
    return version, figures, compared


class Ours:
    """One group of cases."""

    def __init__(self, binary, group, flags):
        self.binary, self.group, self.flags = binary, group, flags
        self.name, self.what = "shmemctl", " ".join(group["words"])
        self.version = "unknown"
        self.report = None  # the last one

    def sizes(self):
        if "blocks" in self.group:
            return tuple(block_bytes(size, self.flags.pes) for size in self.group["sizes"])
        return self.group["sizes"]

    def command(self):
        sizes = self.sizes()
        words = ["-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", str(self.step())]
        effort = ["--quick"] if self.flags.quick else []
        heap = ["--symmetric-size", "4G"] if "blocks" in self.group else []
        return [self.binary, "run", "-n", str(self.flags.pes), "bench", *self.group["words"], *words, *effort, *heap,
                "--json", "-"]

    def step(self):
        """The last size is always measured; others that this makes are left out of the table."""
        sizes = self.group["sizes"]
        return 2 if len(sizes) < 2 else sizes[1] // sizes[0]

    def measure(self):
        done = subprocess.run(self.command(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=300)
        if done.returncode not in (0, 1):
            raise Failed(last_line(done.stderr.partition("shmemctl: fix")[0]))
        report = json.loads(done.stdout)
        self.report = report
        self.version = report.get("tool", {}).get("version", "unknown")
        wanted = set(self.sizes()) | {0}
        return dict(self.as_in_table(*row) for row in read_report(report).items() if row[0][1] in wanted)

    def as_in_table(self, key, figure):
        name = self.group.get("rename", key[0]) + self.group.get("suffix", "")
        senders = self.flags.pes // 2 * 2 if "all_send" in self.group else 1
        return (name, key[1]), (figure[0] / senders, figure[1])


# What each peer is told by its environment, and what that is for.
SETTINGS = {
    "NVSHMEM": {"NVSHMEM_SYMMETRIC_SIZE": ("4G", "its heap"),
                "NVSHMEM_REMOTE_TRANSPORT": ("none", "no NIC is opened: all traffic is that of mapped memory"),
                "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": ("lo", "its processes meet on this machine")},
    "NCCL": {},
}


def settings_text(name):
    told = [f"{variable}={value} ({why})" for variable, (value, why) in SETTINGS[name].items()]
    return f"{', '.join(told) or 'no variable is set'}; all else is the peer's default or this shell's environment"


class Peer:
    """Processes of a program that is told its number, how many there are, and a file to meet at."""

    def __init__(self, name, command, flags, seconds, libraries=""):
        self.name, self.start, self.seconds, self.libraries = name, command, seconds, libraries
        self.groups, self.n_pes, self.what = flags.groups, flags.pes, "all"
        self.version, self.compared = "unknown", {}

    def measure(self):
        with tempfile.TemporaryDirectory(prefix="compare-gpu-") as folder:
            place = str(pathlib.Path(folder) / "meet")
            variables = {**os.environ, **{variable: value for variable, (value, _) in SETTINGS[self.name].items()}}
            if self.libraries:  # what they open by name
                variables["LD_LIBRARY_PATH"] = ":".join(filter(None, [self.libraries,
                                                                      os.environ.get("LD_LIBRARY_PATH")]))
            processes = [subprocess.Popen([*self.start, str(pe), str(self.n_pes), place, str(self.seconds),
                                           *self.groups], env=variables, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                         for pe in range(self.n_pes)]
            try:
                answers = [process.communicate(timeout=PEER_S) for process in processes]
            except subprocess.TimeoutExpired as expired:
                raise Failed(f"no end within {PEER_S} s") from expired
            finally:
                for process in processes:
                    if process.poll() is None:
                        process.kill()
                        process.wait()
        for process, (_, err) in zip(processes, answers):
            if process.returncode != 0:
                raise Failed(last_line(err))
        self.version, figures, self.compared = read_lines(answers[0][0])
        return figures


def nvshmem_folder():
    """Where the package nvidia-nvshmem has its include and lib; nothing without it."""
    packages = [f"{path}/nvidia/{name}" for path in sys.path for name in ("nvshmem", "cu13", "cu12")]
    for place in [os.environ.get("NVSHMEM_HOME", ""), *packages]:
        if place and (pathlib.Path(place) / "include" / "nvshmem.h").exists():
            return pathlib.Path(place)
    return None


def nvshmem_peer(into, flags, seconds):
    """Compiles it. Throws Failed with the reason."""
    home = nvshmem_folder()
    if home is None:
        raise Failed("the package nvidia-nvshmem is not installed")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not pathlib.Path(nvcc).exists():
        raise Failed("there is no nvcc")
    host = sorted(glob.glob(str(home / "lib" / "libnvshmem_host.so*")))
    if not host or not (home / "lib" / "libnvshmem_device.a").exists():
        raise Failed(f"{home}/lib has no libnvshmem_host.so or libnvshmem_device.a")
    program = pathlib.Path(into) / "nvshmem_gpu"
    done = subprocess.run([nvcc, "-std=c++17", "-O2", "-rdc=true", "-arch=sm_90", "-I", str(home / "include"),
                           str(PEERS / "nvshmem_gpu.cu"), "-o", str(program), str(home / "lib" / "libnvshmem_device.a"),
                           "-Xlinker", host[0], "-Xlinker", "-rpath", "-Xlinker", str(home / "lib"), "-lcuda"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise Failed("nvcc: " + last_line(done.stderr + done.stdout))
    return Peer("NVSHMEM", [str(program)], flags, seconds, str(home / "lib"))


def nccl_peer(flags, seconds):
    if not {"stream", "exchange"} & set(flags.groups):
        raise Failed("it has nothing of these groups")
    probe = subprocess.run([sys.executable, "-c", "import torch, torch.distributed as d; "
                            "raise SystemExit(0 if d.is_nccl_available() else 1)"],
                           stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120)
    if probe.returncode != 0:
        raise Failed("PyTorch with NCCL cannot be imported")
    return Peer("NCCL", [sys.executable, str(PEERS / "nccl_gpu.py")], flags, seconds)


def gpus():
    """What nvidia-smi says of them, one line each."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,pci.bus_id", "--format=csv,noheader"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def measured(programs, rounds, save):
    """({program: {key: [(value, unit)]}}, {program: reason}). `save` is given both whenever there is more of them, so
    that a run that is cut short leaves what it had."""
    figures, reasons = {}, {}
    for number in range(rounds):
        for program in programs if number % 2 == 0 else reversed(programs):
            say(f"round {number + 1} of {rounds}: {program.name}")
            try:
                for key, figure in program.measure().items():
                    figures.setdefault(program.name, {}).setdefault(key, []).append(figure)
            except (Failed, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as problem:
                reasons[f"{program.name}, {program.what}"] = str(problem)
                say(f"  {program.name}: {problem}")
            save(figures, reasons)
    return figures, reasons


def rows_of(figures):
    """By case and size: each program's median and spread, and ours by theirs: above 1 is better than the peer."""
    rows = []
    for key in sorted({key for each in figures.values() for key in each}, key=order_of):
        row = {"case": key[0], "size_bytes": key[1], "launch": SHAPES[case_of(key[0])], "programs": {}}
        for name, each in figures.items():
            if key in each:
                row["unit"] = each[key][0][1]
                row["programs"][name] = spread([value for value, _ in each[key]])
        row["better_than"] = ratios_of(row)
        rows.append(row)
    return rows


def ratios_of(row):
    """{"shmemctl / NVSHMEM": 1.02}: how many times as good ours is."""
    ratios = {}
    for ours, mine in row["programs"].items():
        for peer, theirs in row["programs"].items():
            if ours.startswith("shmemctl") and not peer.startswith("shmemctl") and mine["median"] > 0:
                ratio = mine["median"] / theirs["median"]
                ratios[f"{ours} / {peer}"] = ratio if row["unit"] == "GB/s" else 1 / ratio
    return ratios


def parsed(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="of: " + ", ".join(NAMES))
    parser.add_argument("--pes", type=int, default=0, help=f"default: a PE for each GPU, {MOST_PES} at most")
    parser.add_argument("--rounds", type=int, default=0, help="default 5, or 3 with --quick")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--shmemctl", type=lambda text: str(pathlib.Path(text).resolve()),
                        default=str(ROOT / "build" / "shmemctl"))
    parser.add_argument("--json", type=pathlib.Path, help="every figure of every round")
    parser.add_argument("--report", type=pathlib.Path, help="the medians as a report of the tool: shmemctl report show")
    flags = parser.parse_args(words)
    flags.groups = flags.groups or list(NAMES)
    if unknown := set(flags.groups) - set(NAMES):
        parser.error(f"there is no group {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    flags.rounds = flags.rounds or (3 if flags.quick else 5)
    if flags.pes != 0 and flags.pes < 2:
        parser.error("--pes takes 2 or more")
    if flags.rounds < 1:
        parser.error("--rounds takes 1 or more")
    return flags


def write_report(flags, programs, rows, reasons):
    """What --report asks for; its machine and its tool are those of our own last measurement."""
    bases = [program.report for program in programs if isinstance(program, Ours) and program.report]
    if not flags.report or not bases:
        return
    versions = {program.name: program.version for program in programs}
    words = [*flags.groups, "--pes", str(flags.pes), "--rounds", str(flags.rounds),
             *(["--quick"] if flags.quick else [])]
    peers = {program.name: {"settings": settings_text(program.name), "compared": program.compared}
             for program in programs if isinstance(program, Peer)}
    report = gpu_report.report_of(bases[-1], words, rows, versions, reasons, peers)
    flags.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def main():
    flags = parsed()
    devices = gpus()
    if len(devices) < 2:
        say(f"compare_gpu: two GPUs are needed, nvidia-smi shows {len(devices)}")
        return NO_GPUS
    try:
        flags.pes = pes_of(flags.pes, len(devices))
    except Failed as problem:
        say(f"compare_gpu: {problem}")
        return NO_GPUS
    seconds = 0.2 if flags.quick else 1.0
    programs = [Ours(flags.shmemctl, group, flags) for group in GROUPS if group["group"] in flags.groups]
    reasons = {}
    with tempfile.TemporaryDirectory(prefix="compare-gpu-") as folder:
        for name, make in (("NVSHMEM", lambda: nvshmem_peer(folder, flags, seconds)),
                           ("NCCL", lambda: nccl_peer(flags, seconds))):
            try:
                programs.append(make())
            except (Failed, subprocess.TimeoutExpired) as problem:
                reasons[name] = str(problem)
        def save(figures, failed):
            if flags.json:
                versions = {program.name: program.version for program in programs}
                flags.json.write_text(json.dumps({"gpus": devices, "pes": flags.pes, "versions": versions, "rounds": flags.rounds,
                                                  "quick": flags.quick, "rows": rows_of(figures),
                                                  "missing": {**reasons, **failed}}, indent=1) + "\n", encoding="utf-8")

        figures, failed = measured(programs, flags.rounds, save)
    reasons.update(failed)
    rows = rows_of(figures)
    write_report(flags, programs, rows, reasons)
    versions = {program.name: program.version for program in programs}
    print(f"{'; '.join(devices)}. {', '.join(f'{name} {version}' for name, version in versions.items())}. "
          f"{flags.pes} PEs, a GPU each. Medians of {flags.rounds} rounds, programs in turns.\n")
    print(gpu_table.table(rows))
    for name, shape in SHAPES.items():
        print(f"- {name}: {shape}")
    for program in programs:
        if isinstance(program, Peer):
            print(f"- {program.name}: {settings_text(program.name)}")
            print(f"- {program.name} compares: {gpu_report.compared_text(program.compared)}")
    for name, reason in reasons.items():
        print(f"- {name} is missing: {reason}")
    return 1 if any(name.startswith("shmemctl") for name in reasons) else 0


if __name__ == "__main__":
    sys.exit(main())
