#!/usr/bin/env python3
"""Measures our network transports beside the programs of their libraries, in one run and one environment.

    scripts/compare_transports.py [--where host,lab,rails] [--rounds 5] [--shmemctl build/shmemctl]
                                  [--json FILE] [--into docs/transports-speed.md]
"""
import argparse
import json
import pathlib
import shlex
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
from compare import points as all_points  # noqa: E402
from compare import rounds as measuring  # noqa: E402


def points_of(where, binary):
    if where == "lab":
        return all_points.lab_points(binary)
    if where == "rails":
        return all_points.rails_points(binary)
    return all_points.host_points(binary, all_points.interface())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", default="host")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shmemctl", default=str(ROOT / "build" / "shmemctl"))
    flags = parser.parse_args()
    points = [point for point in points_of(flags.where, flags.shmemctl) if flags.only in f"{point.what} {point.size_bytes}"]
    results = measuring.measure(points, flags.rounds)
    for point in points:
        rows = results[point.what, point.size_bytes]
        for name, each in rows.items():
            values = [row["value"] for row in each if row["value"]]
            print(point.what, point.size_bytes, name, values and statistics.median(values), each[-1])
        for goal in point.goals:
            ratios = [a["value"] / b["value"] for a, b in zip(rows[goal.name], rows[goal.beside]) if a["value"] and b["value"]]
            print("  ", goal.name, "/", goal.beside, goal.words(), ratios and statistics.median(ratios))


main()
