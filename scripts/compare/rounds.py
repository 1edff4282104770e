"""Runs the programs of the points alternately, round by round, and keeps every figure."""
import os
import pathlib
import sys
import time

from compare.programs import Failed


def say(text):
    print(text, file=sys.stderr, flush=True)


def cpu_ticks():
    """(busy, all) of all CPUs, in clock ticks, since boot; idle is idle and iowait."""
    words = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    ticks = [int(word) for word in words[:8]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def one(program):
    """What a program measured, as a row for JSON."""
    busy, total = cpu_ticks()
    start = time.monotonic()
    try:
        figure = program.measure()
        row = {"value": figure.value, **figure.details}
    except (Failed, OSError, ValueError, KeyError) as problem:
        row = {"value": None, "reason": str(problem)}
    busy_after, total_after = cpu_ticks()
    row["seconds"] = round(time.monotonic() - start, 3)
    row["cpu_busy"] = round((busy_after - busy) / max(total_after - total, 1), 3)
    row["load"] = os.getloadavg()[0]
    return row


def measure(points, rounds):
    """{(what, size): {name: [row of each round]}}. Every other round goes backwards, so that nobody always
    follows the same one."""
    results = {(point.what, point.size_bytes): {name: [] for name in point.programs} for point in points}
    for number in range(rounds):
        for point in points:
            names = list(point.programs)
            for name in names if number % 2 == 0 else reversed(names):
                row = one(point.programs[name])
                results[point.what, point.size_bytes][name].append(row)
                shown = row.get("reason") or f"{row['value']:.4g} {point.unit}"
                say(f"round {number + 1} of {rounds}: {point.what}, {point.size_bytes} B: {name}: {shown}")
    return results
