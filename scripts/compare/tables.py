"""Medians, ratios and goals of what the rounds measured; JSON and Markdown."""
import datetime
import os
import pathlib
import platform
import re
import statistics

TITLES = {"lab": "Lab: one machine, Soft-RoCE `rxe0`, two processes",
          "rails": "Lab: one machine, two Soft-RoCE devices, a process with both on each of two virtual nodes",
          "host": "Host: TCP between two processes"}


def median_of(rows):
    values = [row["value"] for row in rows if row["value"] is not None]
    return statistics.median(values) if values else None


def ratios_of(rows, beside):
    """Of the rounds in which both measured."""
    return [one["value"] / other["value"] for one, other in zip(rows, beside)
            if one["value"] is not None and other["value"]]


def judged(goal, programs):
    ratios = ratios_of(programs[goal.name], programs[goal.beside])
    middle = statistics.median(ratios) if ratios else None
    return {"program": goal.name, "beside": goal.beside, "goal": goal.words(), "ratios": ratios, "ratio": middle,
            "met": None if middle is None else goal.met(middle)}


def document(where, points, results):
    """One environment's part of the JSON."""
    return {"where": where, "points": [
        {"what": point.what, "size_bytes": point.size_bytes, "unit": point.unit, "limit": point.limit,
         "programs": rows, "medians": {name: median_of(each) for name, each in rows.items()},
         "goals": [judged(goal, rows) for goal in point.goals]} for point, rows in zip(points, results)]}


def shown(value):
    return "-" if value is None else f"{value:.3g}"


def cells_of_goal(goal):
    if goal is None:
        return ["-", "-", "-"]
    if goal["ratio"] is None:
        return ["-", goal["goal"], "not measured"]
    span = f"{shown(min(goal['ratios']))} to {shown(max(goal['ratios']))}"
    return [f"{goal['ratio']:.2f} of {goal['beside']} ({span})", goal["goal"], "met" if goal["met"] else "missed"]


def table(part):
    lines = ["| what | size | program | median | CPUs busy | ratio (rounds from, to) | goal | | limit |",
             "| --- | ---: | --- | ---: | ---: | --- | --- | --- | --- |"]
    for point in part["points"]:
        goals = {goal["program"]: goal for goal in point["goals"]}
        for name, rows in point["programs"].items():
            middle = point["medians"][name]
            figure = f"{shown(middle)} {point['unit']}" if middle is not None else f"- ({rows[-1].get('reason')})"
            busy = statistics.median(row["cpu_busy"] for row in rows)
            lines.append("| " + " | ".join([point["what"], str(point["size_bytes"]), name, figure, f"{busy:.0%}",
                                            *cells_of_goal(goals.get(name)), point["limit"]]) + " |")
    return "\n".join(lines)


def moved(part):
    """Lines that say what each device sent, for points where a program used several."""
    lines = []
    for point in part["points"]:
        for name, rows in point["programs"].items():
            devices = next((row["sent_by"] for row in rows if row.get("sent_by")), {})
            if part["where"] == "rails" and devices:
                counts = ", ".join(f"{counter} {count}" for counter, count in sorted(devices.items()))
                lines.append(f"- {name}: {counts} in one run")
    return "\n".join(lines)


def text(parts):
    """Markdown of all environments."""
    sections = []
    for part in parts:
        if part.get("skipped"):
            sections.append(f"{TITLES[part['where']]}: not measured: {part['skipped']}")
            continue
        sections.append(f"{TITLES[part['where']]}; load of the host {part['load'][0]:.1f} before, "
                        f"{part['load'][1]:.1f} after:")
        sections += [each for each in (table(part), moved(part)) if each]
    return "\n\n".join(sections)


def circumstances(rounds):
    """One sentence: where and when."""
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        info = ""
    model = re.search(r"model name\s*:\s*(.+)", info)
    virtual = ", virtual machine" if re.search(r"^flags.*\bhypervisor\b", info, re.M) else ""
    return (f"{datetime.date.today().isoformat()}, {len(os.sched_getaffinity(0))} CPUs, "
            f"{model[1] if model else platform.machine()}{virtual}; medians of {rounds} rounds; a ratio is the median "
            "of the rounds' ratios.")


def put_into(path, new):
    """Replaces what is between the two marks."""
    begin, end = "<!-- compare_transports: begin -->", "<!-- compare_transports: end -->"
    whole = path.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        raise SystemExit(f"compare_transports: {path} has no lines {begin} and {end}")
    head, tail = whole.split(begin)[0], whole.split(end)[1]
    path.write_text(f"{head}{begin}\n{new}\n{end}{tail}", encoding="utf-8")
