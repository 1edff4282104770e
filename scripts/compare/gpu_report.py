"""The figures of compare_gpu.py as a report of the tool, so that `shmemctl report show` prints them."""
import datetime
import math
import statistics

NOT_MEASURED = "not measured by this comparison"
PEER_UNCHECKED = "the peer's program compares no data of this figure"


def stats_of(values):
    """Of the rounds' figures."""
    return {"n": len(values), "min": min(values), "p50": statistics.median(values),
            "p90": sorted(values)[math.ceil(0.9 * len(values)) - 1], "p99": None,
            "p99_reason": "fewer than 100 samples", "max": max(values), "mean": statistics.fmean(values),
            "stddev": statistics.stdev(values) if len(values) > 1 else 0}


def result_of(row, program, compared=None):
    """A row of the report: the spread is that of the rounds.

    compared: of a peer, {(case, size): what its program has compared}"""
    figure = row["programs"][program]
    is_bandwidth = row["unit"] == "GB/s"
    result = {"case": row["case"], "params": {"program": program},
              "stats": stats_of(figure["values"]), "unit": "GBps" if is_bandwidth else row["unit"],
              "bandwidth_GBps": figure["median"] if is_bandwidth else None,
              "link_fraction": None, "link_fraction_reason": NOT_MEASURED,
              "limited_by": None, "limited_by_reason": NOT_MEASURED, "status": "pass", "verified": "passed"}
    if row["size_bytes"]:
        result["params"]["size_bytes"] = row["size_bytes"]
    if not is_bandwidth:
        result["bandwidth_GBps_reason"] = "a latency"
    if not program.startswith("shmemctl"):
        what = (compared or {}).get((row["case"], row["size_bytes"]), "")
        result.update({"reason": f"the peer's program compares {what}"} if what
                      else {"verified": "unchecked", "reason": PEER_UNCHECKED})
    return result


def shape_of(case, words):
    return {"id": "comparison-shape", "severity": "info", "subject": case, "message": words,
            "fix": "nothing: so it was measured"}


def settings_of(program, settings):
    return {"id": "comparison-settings", "severity": "info", "subject": program, "message": settings,
            "fix": "nothing: so it was measured"}


def compared_text(compared):
    """"every byte of the last message (get, put); nothing (barrier)": what a peer compares, by its cases."""
    cases = {}
    for (name, _), what in compared.items():
        cases.setdefault(what or "nothing", set()).add(name)
    return "; ".join(f"{what} ({', '.join(sorted(names))})" for what, names in sorted(cases.items())) or "nothing"


def finding_of(program, reason):
    return {"id": "comparison-missing", "severity": "warning", "subject": program, "message": reason,
            "fix": "mend that, and run scripts/compare_gpu.py again"}


def shapes_of(rows):
    """How each case was launched, once for all its variants."""
    return {row["case"].partition("/")[0]: row["launch"] for row in rows}


def report_of(base, words, rows, versions, missing, peers):
    """A report with these figures. Its machine, job and tool are those of `base`, a report of our own `bench`.

    words: what compare_gpu.py was told; peers: by name their settings in words, and what they have compared"""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    report = {key: base[key] for key in ("schema", "tool", "job", "hosts", "env", "topology", "mapping") if key in base}
    report.update(started_at=base["started_at"], finished_at=now, command=["scripts/compare_gpu.py", *words],
                  status="complete", exit_code=0, nic_counters=[],
                  results=[result_of(row, program, peers.get(program, {}).get("compared"))
                           for row in rows for program in row["programs"]],
                  findings=[finding_of(program, reason) for program, reason in missing.items()] +
                  [settings_of(program, peer["settings"]) for program, peer in peers.items()] +
                  [shape_of(case, words) for case, words in shapes_of(rows).items()])
    for row in report["results"]:
        row["params"]["version"] = versions.get(row["params"]["program"], "unknown")
    return report
