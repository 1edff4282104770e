#!/usr/bin/env python3
"""Measures the network transports beside the programs of their libraries, in one run and one environment.

    scripts/compare_transports.py [--where host,lab,rails] [--rounds 5] [--only WORDS]
                                  [--shmemctl build/shmemctl] [--json FILE] [--into docs/results/transports.md]

host   libfabric and ucx over TCP beside ucx_perftest (package ucx-utils), all on one interface
lab    ibrc beside ib_write_bw and ib_write_lat (package perftest), libfabric over verbs and ucx over
       rc_verbs beside ibrc, in a virtual machine with Soft-RoCE (scripts/lab/run)
rails  the same transport with one NIC and with two, in such a machine

All programs of a point run one after the other in each round; a ratio is the median of the rounds' ratios,
since figures of different minutes do not compare. docs/results/transports.md says how alike they are. Exit code: 0
if it ran, also where a goal was missed; 1 if one of our transports gave no figure or wrong data."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from compare import points as comparisons  # noqa: E402
from compare import rounds as measuring  # noqa: E402
from compare import tables  # noqa: E402

HCAS = {"lab": 1, "rails": 2}
LAB_CANNOT_RUN = 77
LAB_FAILED = "the lab failed"


def points_of(where, flags):
    if where == "host":
        points = comparisons.host_points(flags.shmemctl, comparisons.interface())
    elif where == "lab":
        points = comparisons.lab_points(flags.shmemctl)
    else:
        points = comparisons.rails_points(flags.shmemctl)
    return [point for point in points if flags.only in f"{point.what} of {point.size_bytes}"]


def measured_here(where, flags):
    points = points_of(where, flags)
    return tables.document(where, points, measuring.measure(points, flags.rounds))


def measured_in_lab(where, flags):
    """This script again, in a machine of the lab."""
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        answer = pathlib.Path(folder) / "part.json"
        done = subprocess.run(
            [str(ROOT / "scripts" / "lab" / "run"), "--hcas", str(HCAS[where]), "--out", folder,
             "--timeout", str(60 + 150 * flags.rounds), "--", sys.executable, __file__, "--inside", where,
             "--rounds", str(flags.rounds), "--only", flags.only, "--shmemctl", str(flags.shmemctl),
             "--json", str(answer)], check=False, stdin=subprocess.DEVNULL)
        if answer.exists():
            return json.loads(answer.read_text(encoding="utf-8"))
        reason = "this host cannot run the lab" if done.returncode == LAB_CANNOT_RUN else LAB_FAILED
        return {"where": where, "points": [], "skipped": reason}


def measured(where, flags):
    before = os.getloadavg()[0]
    part = measured_here(where, flags) if where == "host" else measured_in_lab(where, flags)
    return {**part, "load": [before, os.getloadavg()[0]]}


def all_of_ours(parts):
    """Whether everything whose figure has a goal was measured."""
    return all(part.get("skipped") != LAB_FAILED for part in parts) and all(goal["ratio"] is not None for part in parts for point in part["points"] for goal in point["goals"])


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", default="host,lab,rails")
    parser.add_argument("--inside", choices=list(HCAS), help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="points whose name has these words, e.g. 'latency'")
    parser.add_argument("--shmemctl", type=lambda text: str(pathlib.Path(text).resolve()),
                        default=str(ROOT / "build" / "shmemctl"))
    parser.add_argument("--json", type=pathlib.Path, help="every figure of every round")
    parser.add_argument("--into", type=pathlib.Path, help="a file with the two marks of compare_transports")
    flags = parser.parse_args()
    flags.where = flags.where.split(",")
    if flags.rounds < 1:
        parser.error("--rounds takes 1 or more")
    if unknown := set(flags.where) - set(tables.TITLES):
        parser.error(f"--where {unknown.pop()}: not one of {', '.join(tables.TITLES)}")
    return flags


def main():
    flags = parsed()
    if flags.inside:
        flags.json.write_text(json.dumps(measured_here(flags.inside, flags)), encoding="utf-8")
        return 0
    parts = [measured(where, flags) for where in flags.where]
    text = "\n\n".join([tables.circumstances(flags.rounds), tables.text(parts)])
    print(text)
    if flags.json:
        flags.json.write_text(json.dumps({"rounds": flags.rounds, "environments": parts}, indent=1) + "\n",
                              encoding="utf-8")
    if flags.into:
        tables.put_into(flags.into, text)
    return 0 if all_of_ours(parts) else 1


if __name__ == "__main__":
    sys.exit(main())
