"""The figures of compare_gpu.py as a report of the tool, so that `shmemctl report show` prints them."""
import datetime
import math
import statistics

NOT_TOLD = "not told by this comparison"
PEER_UNCHECKED = "the peer's program compares no data"


def stats_of(values):
    """Of the rounds' figures."""
    return {"n": len(values), "min": min(values), "p50": statistics.median(values),
            "p90": sorted(values)[math.ceil(0.9 * len(values)) - 1], "p99": None,
            "p99_reason": "fewer than 100 samples", "max": max(values), "mean": statistics.fmean(values),
            "stddev": statistics.stdev(values) if len(values) > 1 else 0}


def result_of(row, program):
    """A row of the report: the spread is that of the rounds."""
    figure = row["programs"][program]
    is_bandwidth = row["unit"] == "GB/s"
    result = {"case": row["case"], "params": {"program": program},
              "stats": stats_of(figure["values"]), "unit": "GBps" if is_bandwidth else row["unit"],
              "bandwidth_GBps": figure["median"] if is_bandwidth else None,
              "link_fraction": None, "link_fraction_reason": NOT_TOLD,
              "limited_by": None, "limited_by_reason": NOT_TOLD, "status": "pass", "verified": "passed"}
    if row["size_bytes"]:
        result["params"]["size_bytes"] = row["size_bytes"]
    if not is_bandwidth:
        result["bandwidth_GBps_reason"] = "a latency"
    if not program.startswith("shmemctl"):
        result.update(verified="unchecked", reason=PEER_UNCHECKED)
    return result


def shape_of(case, words):
    return {"id": "comparison-shape", "severity": "info", "subject": case, "message": words,
            "fix": "nothing: so it was measured"}


def finding_of(program, reason):
    return {"id": "comparison-missing", "severity": "warning", "subject": program, "message": reason,
            "fix": "mend that, and run scripts/compare_gpu.py again"}


def shapes_of(rows):
    """How each case was launched, once for all its variants."""
    return {row["case"].partition("/")[0]: row["launch"] for row in rows}


def report_of(base, words, rows, versions, missing):
    """A report with these figures. Its machine, job and tool are those of `base`, a report of our own `bench`.

    words: what compare_gpu.py was told"""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    report = {key: base[key] for key in ("schema", "tool", "job", "hosts", "env", "topology", "mapping") if key in base}
    report.update(started_at=base["started_at"], finished_at=now, command=["scripts/compare_gpu.py", *words],
                  status="complete", exit_code=0, nic_counters=[],
                  results=[result_of(row, program) for row in rows for program in row["programs"]],
                  findings=[finding_of(program, reason) for program, reason in missing.items()] +
                  [shape_of(case, words) for case, words in shapes_of(rows).items()])
    for row in report["results"]:
        row["params"]["version"] = versions.get(row["params"]["program"], "unknown")
    return report
