"""Runs the programs of the points alternately, round by round, and keeps every figure."""
import os
import pathlib
import sys
import threading
import time

from compare.programs import Failed


def say(text):
    print(text, file=sys.stderr, flush=True)


def cpu_ticks():
    """(busy, all) of all CPUs, in clock ticks, since boot; idle is idle and iowait."""
    words = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    ticks = [int(word) for word in words[:8]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


class BusyWatch:
    """How busy all CPUs of this machine together were in the busiest half second."""

    WINDOW_S = 0.5

    def __init__(self):
        self.most = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        busy, total = cpu_ticks()
        while not self.ended.wait(self.WINDOW_S):
            busy_now, total_now = cpu_ticks()
            self.most = max(self.most, (busy_now - busy) / max(total_now - total, 1))
            busy, total = busy_now, total_now

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def one(program):
    """What a program measured, as a row for JSON."""
    start = time.monotonic()
    with BusyWatch() as watch:
        try:
            figure = program.measure()
            row = {"value": figure.value, **figure.details}
        except (Failed, OSError, ValueError, KeyError, IndexError) as problem:
            row = {"value": None, "reason": str(problem)}
    row["seconds"] = round(time.monotonic() - start, 3)
    row["cpu_busy"] = round(watch.most, 3)
    row["load"] = round(os.getloadavg()[0], 2)
    return row


def measure(points, rounds):
    """By point: {name: [row of each round]}. Every other round goes backwards, so that nobody always follows
    the same one."""
    results = [{name: [] for name in point.programs} for point in points]
    for number in range(rounds):
        for point, rows in zip(points, results):
            names = list(point.programs)
            for name in names if number % 2 == 0 else reversed(names):
                row = one(point.programs[name])
                rows[name].append(row)
                shown = row.get("reason") or f"{row['value']:.4g} {point.unit}"
                say(f"round {number + 1} of {rounds}: {point.what}, {point.size_bytes} B: {name}: {shown}")
    return results
