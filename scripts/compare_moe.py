#!/usr/bin/env python3
"""Measures `shmemctl moe` on GPUs beside other projects' dispatch and combine, in turns, on the same GPUs in one run.

    scripts/compare_moe.py [CASE...] [--pes N] [--sms 24] [--rounds 5] [--quick] [--flush-l2]
                           [--shmemctl build/shmemctl] [--json FILE] [--report FILE]

Cases (all, if none is named): ht-bf16, ht-fp8 (4096 tokens), ll-128, ll-16, ll-1 (FP8, so many tokens); 7168 channels,
top 8 of 256 experts.

One boundary for all: from input tensors ready until outputs ready; of each iteration the slowest rank; the same routing
(`moe --record`), so the same bytes; caches as said. Two windows: "kernels" (all GPUs begin together, launches in
advance) and "call" (on idle GPUs, with the host's part). Each figure also has the bandwidths that the projects' own
counts of bytes make of it, and what the NVLinks counted beside what the routing says.

deepep-v1, deepep-v2, hybrid-ep   whichever of them PyTorch's Python imports (tests/peers/moe_gpu.py)
nccl-ep                           its ep_bench, if SHMEMCTL_EP_BENCH names it or PATH has it, under mpirun: its own
                                  routing, window and count, so beside the table and not in it

Programs take turns, round by round, every other round backwards. A figure is the median of the rounds' medians, with
the smallest and the largest. Ours are verified bit by bit; what each peer's program compares is said. NVLink multicast
is left off. Exit code: 0 if it ran; 1 if one of our own figures is missing; 3 without two GPUs."""
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

import compare_gpu
from compare import gpu_report
from compare.moe_cases import CASES, EXPERTS, HIDDEN, OPERATIONS, TOP_K, WINDOWS, BadRouting, rates, read_routing
from compare.moe_cases import row_bytes
from compare_gpu import Failed, gpus, last_line, pes_of, say, spread

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER = ROOT / "tests" / "peers" / "moe_gpu.py"
PEER_S, OURS_S = 300, 180
NO_GPUS = 3
#: A multicast that fails can put the switches of all GPUs of a host out of service.
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


def environment():
    return {**os.environ, **NO_MULTICAST}


def slowest(by_rank):
    """Of each iteration the time of the rank that took longest. Throws Failed if ranks have different numbers."""
    if not by_rank or len({len(times) for times in by_rank}) != 1 or not by_rank[0]:
        raise Failed("ranks have timed different numbers of calls")
    return [max(times) for times in zip(*by_rank)]


def read_ours(report, case_name, window):
    """{(case, operation, window): (median in us, ratio of NVLink bytes or a reason)}. Throws Failed for a bad row."""
    figures = {}
    traffic = nvlink_of_report(report)
    for row in report["results"]:
        operation = row["case"].removeprefix("moe-")
        if row["params"].get("phase") != "total" or operation not in CASES[case_name]["operations"]:
            continue
        if row["status"] != "pass" or row["verified"] != "passed":
            raise Failed(f"{case_name} {operation}: {row['status']}, {row['verified']}: {row.get('reason')}")
        figures[(case_name, operation, window)] = (row["stats"]["p50"], traffic)
    if len(figures) != len(CASES[case_name]["operations"]):
        raise Failed(f"{case_name}: the report has {len(figures)} of {len(CASES[case_name]['operations'])} figures")
    return figures


def nvlink_of_report(report):
    """How many times the routing's bytes the NVLinks have counted, over all calls of the point; or why not."""
    links = [link.get("all_calls", {}) for link in report["moe"][0].get("links", [])]
    for link in links:
        if link.get("counted_out_bytes") is None:
            return link.get("counted_out_bytes_reason", "the report has no count")
    by_routing = sum(link["out_bytes"] for link in links)
    return sum(link["counted_out_bytes"] for link in links) / by_routing if by_routing else "the routing moves nothing"


class Ours:
    name = "shmemctl"

    def __init__(self, flags, routings):
        self.flags, self.routings = flags, routings
        self.version, self.report, self.compared = "unknown", None, {}

    def command(self, case_name, window):
        case = CASES[case_name]
        words = ["--backend", "gpu", "--mode", case["mode"], "--dtype", case["dtype"], "--hidden", str(HIDDEN),
                 "--routing", str(self.routings[case_name]), "-n", str(iterations(self.flags)), "-w", "5"]
        if case["mode"] == "ht":
            words += ["--num-sms", str(self.flags.sms)]
        if window == "kernels":
            words.append("--kernels-only")
        if self.flags.flush_l2:
            words.append("--flush-l2")
        return [self.flags.shmemctl, "run", "-n", str(self.flags.pes), "moe", *words, "--symmetric-size", "4G",
                "--json", "-"]

    def measure(self):
        figures = {}
        for case_name in self.flags.cases:
            for window in WINDOWS:
                done = subprocess.run(self.command(case_name, window), stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, check=False, timeout=OURS_S, env=environment())
                if done.returncode not in (0, 1):
                    raise Failed(f"{case_name}: " + last_line(done.stderr.partition("shmemctl: fix")[0]))
                self.report = json.loads(done.stdout)
                self.version = self.report.get("tool", {}).get("version", "unknown")
                figures.update(read_ours(self.report, case_name, window))
        return figures


def read_peer(outputs, plan_rows):
    """From the lines of all ranks: version, {(case, operation, window): (median, NVLink ratio or reason)},
    {case: what was compared}, {case: why it failed}.

    @param plan_rows {(case, operation): bytes that leave all ranks in one call}"""
    version, checked, failed, times, links = "unknown", {}, {}, {}, {}
    for output in outputs:
        for line in output.splitlines():
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            if "version" in row:
                version = row["version"]
            elif "failed" in row:
                failed.setdefault(row["case"], row["failed"])
            elif "checked" in row:
                checked[row["case"]] = row["checked"]
            elif "us" in row:
                times.setdefault((row["case"], row["operation"], row["window"]), []).append(row["us"])
            elif "case" in row:
                links.setdefault((row["case"], row["operation"]), []).append(row)
    figures = {}
    for key, by_rank in times.items():
        if key[0] in failed:
            continue
        if len(by_rank) != len(outputs):
            failed[key[0]] = f"{len(by_rank)} of {len(outputs)} ranks have figures"
            continue
        figures[key] = (statistics.median(slowest(by_rank)),
                        nvlink_of_peer(links.get(key[:2], []), plan_rows[key[:2]]))
    return version, figures, checked, failed


def nvlink_of_peer(rows, bytes_of_call):
    reasons = [row["nvlink_reason"] for row in rows if "nvlink_reason" in row]
    if reasons or not rows:
        return reasons[0] if reasons else "not counted"
    expected = bytes_of_call * rows[0]["calls"]
    return sum(row["nvlink_sent_bytes"] for row in rows) / expected if expected else "the routing moves nothing"


class Peer:
    def __init__(self, name, flags, routings, folder):
        self.name, self.flags = name, flags
        self.version, self.compared, self.case_reasons = "unknown", {}, {}
        self.plan = pathlib.Path(folder) / f"{name}.json"
        cases = {case_name: {**CASES[case_name], "experts": EXPERTS, "top_k": TOP_K,
                             "routing": routings[case_name].choices} for case_name in flags.cases}
        self.plan.write_text(json.dumps({"hidden": HIDDEN, "sms": flags.sms, "iterations": iterations(flags),
                                         "warmup": 5, "flush_l2": flags.flush_l2, "windows": list(WINDOWS),
                                         "cases": cases}), encoding="utf-8")
        self.bytes = bytes_by_call(routings, flags.cases)

    def measure(self):
        with tempfile.TemporaryDirectory(prefix="compare-moe-") as folder:
            command = [sys.executable, str(PEER), self.name]
            meet = str(pathlib.Path(folder) / "meet")
            processes = [subprocess.Popen([*command, str(pe), str(self.flags.pes), meet, str(self.plan)],
                                          env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True) for pe in range(self.flags.pes)]
            try:
                answers = [process.communicate(timeout=PEER_S) for process in processes]
            except subprocess.TimeoutExpired as expired:
                raise Failed(f"no end within {PEER_S} s") from expired
            finally:
                for process in processes:
                    if process.poll() is None:
                        process.kill()
                        process.wait()
        version, figures, checked, failed = read_peer([out for out, _ in answers], self.bytes)
        self.version = version if version != "unknown" else self.version
        self.compared.update(checked)
        self.case_reasons.update(failed)
        for process, (_, err) in zip(processes, answers):
            if process.returncode != 0 and not figures:
                raise Failed(f"exit code {process.returncode}: {last_line(err)}")
        if not figures:
            raise Failed(next(iter(failed.values()), "no figures"))
        return figures


def bytes_by_call(routings, cases):
    """{(case, operation): bytes of values and scales that leave all ranks: a row for each token and rank; of a
    low-latency combine, which weighs outputs at the token's source, a row for each choice}."""
    def rows(case_name, operation):
        of_choices = CASES[case_name]["mode"] == "ll" and operation == "combine"
        routing = routings[case_name]
        return sum(routing.returned_selections() if of_choices else routing.sent_rows())

    return {(case_name, operation): rows(case_name, operation) * row_bytes(CASES[case_name]["dtype"], operation)
            for case_name in cases for operation in CASES[case_name]["operations"]}


def iterations(flags):
    return 20 if flags.quick else 50


def record_routing(flags, case_name, folder):
    """The file that all read. Throws Failed."""
    file = pathlib.Path(folder) / f"{case_name}.txt"
    case = CASES[case_name]
    command = [flags.shmemctl, "run", "-n", str(flags.pes), "moe", "--backend", "host", "--mode", "ll", "--hidden",
               "128", "--num-tokens", str(case["tokens"]), "--num-topk", str(TOP_K), "--num-experts", str(EXPERTS),
               "-n", "1", "-w", "0", "--no-verify", "--symmetric-size", "2G", "--record", str(file), "--quiet"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=OURS_S, env={**environment(), "SHMEMCTL_HEAP": "none"})
    if done.returncode != 0 or not file.exists():
        raise Failed(f"the routing of {case_name}: " + last_line(done.stderr.partition("shmemctl: fix")[0]))
    return file


def probe_peers():
    """{peer: "" or why not}"""
    done = subprocess.run([sys.executable, str(PEER), "probe"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=120, env=environment())
    try:
        return json.loads(last_line(done.stdout))
    except ValueError:
        return {"deepep-v1, deepep-v2, hybrid-ep": "the probe failed: " + last_line(done.stderr)}


EP_BENCH_LINES = {"dispatch": re.compile(r"^Dispatch.*(?:avg|total)=([0-9.]+) us"),
                  "combine": re.compile(r"^Combine.*(?:avg|total)=([0-9.]+) us")}


def read_ep_bench(text):
    """{operation: us, as its host saw it} from the first summary of NCCL EP's ep_bench."""
    found = {}
    for line in text.splitlines():
        for operation, pattern in EP_BENCH_LINES.items():
            if operation not in found and (match := pattern.match(line.strip())):
                found[operation] = float(match[1])
    return found


def nccl_ep_lines(flags):
    """[{case, operation, us, what}] of its own bench. Throws Failed with the reason."""
    bench = os.environ.get("SHMEMCTL_EP_BENCH") or shutil.which("ep_bench")
    launcher = shutil.which("mpirun")
    if not bench:
        raise Failed("no ep_bench: SHMEMCTL_EP_BENCH names none, and PATH has none")
    if not launcher:
        raise Failed("ep_bench starts under mpirun, which is not installed")
    lines = []
    for case_name in flags.cases:
        case = CASES[case_name]
        if case["mode"] == "ht" and case["dtype"] == "fp8":
            continue  # its bench has BF16
        command = [launcher, "-n", str(flags.pes), "--allow-run-as-root", bench, "--algorithm", case["mode"],
                   "--tokens", str(case["tokens"]), "--hidden", str(HIDDEN), "--top-k", str(TOP_K), "--experts",
                   str(EXPERTS), "--iters", str(iterations(flags))]
        if case["mode"] == "ht":
            command += ["--max-num-sms", str(flags.sms)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=OURS_S, env=environment())
        found = read_ep_bench(done.stdout)
        if not found:
            raise Failed(f"{case_name}: " + last_line(done.stderr or done.stdout))
        lines += [{"case": case_name, "operation": operation, "us": time_us, "what": " ".join(command[4:])}
                  for operation, time_us in found.items()]
    return lines


def rows_of(figures, routings):
    """By cell: each program's median and spread over the rounds, rates by every count, and ours by theirs."""
    rows = []
    keys = {key for each in figures.values() for key in each}
    for key in sorted(keys, key=lambda key: (list(CASES).index(key[0]), OPERATIONS.index(key[1]),
                                             list(WINDOWS).index(key[2]))):
        case_name, operation, window = key
        programs = {}
        for name, each in figures.items():
            if key not in each:
                continue
            figure = spread([time_us for time_us, _ in each[key]])
            figure["rates_GBps"] = rates(routings[case_name], CASES[case_name], operation, figure["median"])
            ratios = [traffic for _, traffic in each[key] if not isinstance(traffic, str)]
            figure["nvlink_by_routing"] = statistics.median(ratios) if ratios else None
            if not ratios:
                figure["nvlink_reason"] = each[key][0][1]
            programs[name] = figure
        mine = programs.get("shmemctl")
        faster = {name: theirs["median"] / mine["median"] for name, theirs in programs.items()
                  if mine and name != "shmemctl"}
        rows.append({"case": case_name, "operation": operation, "window": window, "programs": programs,
                     "ours_is_times_as_fast": faster})
    return rows


def table(rows):
    lines = ["| case | operation | window | program | us | min to max | GB/s own | deepep-v1 | deepep-v2 | "
             "per-selection | NVLink / routing | ours is as fast times |",
             "| --- | --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        for name, figure in row["programs"].items():
            rate = " | ".join(f"{value:.4g}" for value in figure["rates_GBps"].values())
            link = figure["nvlink_by_routing"]
            times = row["ours_is_times_as_fast"].get(name)
            lines.append(f"| {row['case']} | {row['operation']} | {row['window']} | {name} | {figure['median']:.4g} | "
                         f"{figure['min']:.4g} to {figure['max']:.4g} | {rate} | "
                         f"{'-' if link is None else f'{link:.3f}'} | {'-' if times is None else f'{times:.2f}'} |")
    return "\n".join(lines)


def result_of(row, name, flags, versions, compared):
    """A row of the tool's report. Low latency's cases share a name, so that the page draws them over tokens."""
    figure, case = row["programs"][name], CASES[row["case"]]
    params = {"program": name, "version": versions.get(name, "unknown"), "window": row["window"],
              "mode": case["mode"], "dtype": case["dtype"], "tokens": case["tokens"],
              "caches": "flushed" if flags.flush_l2 else "warm"}
    if case["mode"] == "ht":
        params["num_sms"] = flags.sms
    result = {"case": "moe-" + row["operation"], "params": params, "stats": gpu_report.stats_of(figure["values"]),
              "unit": "us", "bandwidth_GBps": figure["rates_GBps"]["own"], "link_fraction": None,
              "link_fraction_reason": gpu_report.NOT_MEASURED, "limited_by": None, "limited_by_reason": gpu_report.NOT_MEASURED,
              "status": "pass", "verified": "passed"}
    if name != "shmemctl":
        what = compared.get(row["case"])
        result.update({"reason": f"the peer's program compares {what}"} if what
                      else {"verified": "unchecked", "reason": gpu_report.PEER_UNCHECKED})
    return result


def write_report(flags, programs, rows, reasons):
    """What --report asks for; its machine and its tool are those of our own last measurement."""
    base = programs[0].report
    if not flags.report or not base:
        return
    versions = {program.name: program.version for program in programs}
    words = [*flags.cases, "--pes", str(flags.pes), "--sms", str(flags.sms), "--rounds", str(flags.rounds),
             *(["--quick"] if flags.quick else []), *(["--flush-l2"] if flags.flush_l2 else [])]
    report = gpu_report.report_of(base, words, [], versions, {}, {})
    compared = {program.name: program.compared for program in programs}
    report.update(command=["scripts/compare_moe.py", *words],
                  results=[result_of(row, name, flags, versions, compared[name])
                           for row in rows for name in row["programs"]],
                  findings=[{**gpu_report.finding_of(name, reason),
                             "fix": "mend that, and run scripts/compare_moe.py again"}
                            for name, reason in reasons.items()] +
                  [gpu_report.shape_of("window " + name, what) for name, what in WINDOWS.items()])
    flags.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def parsed(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="of: " + ", ".join(CASES))
    parser.add_argument("--pes", type=int, default=0,
                        help=f"default: a PE for each GPU, {compare_gpu.MOST_PES} at most")
    parser.add_argument("--sms", type=int, default=24, help="of each kernel of high throughput (default 24)")
    parser.add_argument("--rounds", type=int, default=0, help="default 5, or 3 with --quick")
    parser.add_argument("--quick", action="store_true", help="fewer iterations")
    parser.add_argument("--flush-l2", action="store_true", help="flush the GPUs' L2 caches before each timed call")
    parser.add_argument("--shmemctl", type=lambda text: str(pathlib.Path(text).resolve()),
                        default=str(ROOT / "build" / "shmemctl"))
    parser.add_argument("--json", type=pathlib.Path, help="every figure of every round")
    parser.add_argument("--report", type=pathlib.Path,
                        help="the medians as a report of the tool: shmemctl report show, report html")
    flags = parser.parse_args(words)
    flags.cases = flags.cases or list(CASES)
    if unknown := set(flags.cases) - set(CASES):
        parser.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    flags.rounds = flags.rounds or (3 if flags.quick else 5)
    if flags.pes != 0 and (flags.pes < 2 or EXPERTS % flags.pes != 0):
        parser.error(f"--pes takes 2 or more, a divisor of {EXPERTS}")
    if flags.rounds < 1 or flags.sms < 1:
        parser.error("--rounds and --sms take 1 or more")
    return flags


def main():
    flags = parsed()
    devices = gpus()
    if len(devices) < 2:
        say(f"compare_moe: two GPUs are needed, nvidia-smi shows {len(devices)}")
        return NO_GPUS
    try:
        flags.pes = pes_of(flags.pes, len(devices))
    except Failed as problem:
        say(f"compare_moe: {problem}")
        return NO_GPUS
    if EXPERTS % flags.pes != 0:
        fitting = 1 << (flags.pes.bit_length() - 1)
        say(f"compare_moe: {EXPERTS} experts cannot be divided among {flags.pes} PEs; pass --pes {fitting}")
        return NO_GPUS
    reasons, own_figures = {}, []
    with tempfile.TemporaryDirectory(prefix="compare-moe-") as folder:
        try:
            files = {case_name: record_routing(flags, case_name, folder) for case_name in flags.cases}
            routings = {name: read_routing(file.read_text(encoding="utf-8")) for name, file in files.items()}
        except (Failed, BadRouting, subprocess.TimeoutExpired) as problem:
            say(f"compare_moe: {problem}")
            return 1
        programs = [Ours(flags, files)]
        for name, why_not in probe_peers().items():
            if why_not:
                reasons[name] = why_not
            else:
                programs.append(Peer(name, flags, routings, folder))
        try:
            own_figures = nccl_ep_lines(flags)
        except (Failed, subprocess.TimeoutExpired) as problem:
            reasons["nccl-ep"] = str(problem)

        def save(figures, failed):
            rows = rows_of(figures, routings)
            if flags.json:
                flags.json.write_text(json.dumps(
                    {"gpus": devices, "pes": flags.pes, "sms": flags.sms, "rounds": flags.rounds, "quick": flags.quick,
                     "caches": "flushed" if flags.flush_l2 else "warm", "windows": WINDOWS,
                     "versions": {program.name: program.version for program in programs}, "rows": rows,
                     "own_bench": own_figures, "missing": {**reasons, **failed}}, indent=1) + "\n", encoding="utf-8")

        for program in programs:
            program.what = "all"
        figures, failed = compare_gpu.measured(programs, flags.rounds, save)
    reasons.update(failed)
    for program in programs[1:]:
        reasons.update({f"{program.name}, {case_name}": why for case_name, why in program.case_reasons.items()})
    rows = rows_of(figures, routings)
    write_report(flags, programs, rows, reasons)
    print(f"{'; '.join(devices)}. {', '.join(f'{program.name} {program.version}' for program in programs)}. "
          f"{flags.pes} PEs, a GPU each, {flags.sms} SMs. Medians of {flags.rounds} rounds, programs in turns, caches "
          f"{'flushed' if flags.flush_l2 else 'warm'}.\n")
    print(table(rows))
    for name, what in WINDOWS.items():
        print(f"- window {name}: {what}")
    for program in programs[1:]:
        for case_name, what in program.compared.items():
            print(f"- {program.name} compares in {case_name}: {what}")
    for line in own_figures:
        print(f"- nccl-ep, its own bench, routing and window: {line['case']} {line['operation']} {line['us']:.4g} us "
              f"({line['what']})")
    for name, reason in reasons.items():
        print(f"- {name} is missing: {reason}")
    return 1 if any(name.startswith("shmemctl") for name in reasons) else 0


if __name__ == "__main__":
    sys.exit(main())
