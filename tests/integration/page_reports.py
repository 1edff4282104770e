"""Synthetic reports for the tests of `report html`: of a node with every section, of successive runs, of a cluster."""
import random

HOSTILE = "</script><script>window.hacked=1</script><!--<img src=x onerror=window.hacked=1>\u2028\u2029'\"`${1}&lt;\u202e\x1b[2J\\"


def report(results=(), host="node1", start="2026-11-21T03:33:00Z", command=("bench", "put"), **more):
    """A valid report as a run would have written it."""
    document = {
        "schema": {"name": "shmemctl.report", "version": "1.0.0"},
        "tool": {"name": "shmemctl", "version": "0.1.0", "git_revision": "abc", "git_dirty": False,
                 "build": {"cuda": "13.0"}},
        "command": ["shmemctl", *command], "started_at": start, "finished_at": start, "status": "complete",
        "exit_code": 0, "job": {"pes": 4, "nodes": 1, "bootstrap": "local", "launcher": "run"},
        "hosts": [{"name": host, "kernel": "6.1.0", "versions": {"nvidia": "580.1"}}], "env": {},
        "results": list(results), "nic_counters": [], "findings": []}
    document.update(more)
    return document


def row(case, params, p50_us, bandwidth_GBps=None, limit_GBps=None, limited_by="mlx5_0:1, 400 Gb/s", **more):
    """One row; its share of the limit follows from the bandwidth."""
    made = {
        "case": case, "params": params, "unit": "us", "verified": "passed", "status": "pass",
        "stats": {"n": 30, "min": p50_us * 0.9, "p50": p50_us, "p90": p50_us * 1.1, "p99": None,
                  "p99_reason": "fewer than 100 samples", "max": p50_us * 1.3, "mean": p50_us,
                  "stddev": p50_us * 0.02},
        "bandwidth_GBps": bandwidth_GBps}
    if bandwidth_GBps is None:
        made["bandwidth_GBps_reason"] = "not measured"
    if limit_GBps and bandwidth_GBps:
        made.update(link_fraction=bandwidth_GBps / limit_GBps, limited_by=limited_by)
    else:
        made.update(link_fraction=None, link_fraction_reason="not known", limited_by=None,
                    limited_by_reason="not known")
    made.update(more)
    return made


def sweep(case, latency_us, limit_GBps, factor=1.0, **params):
    """A size sweep of latency and bandwidth: rows from 8 B to 64 MiB."""
    rows = []
    for power in range(3, 27):
        size = 1 << power
        time_us = (latency_us + size / limit_GBps / 1e3 / 0.93) * factor
        rows.append(row(case, {"size_bytes": size, **params}, time_us, size / time_us / 1e3, limit_GBps))
    return rows


def topology(n_gpus=8):
    """Pairs of GPUs with pairs of NICs on switches, two NUMA nodes."""
    labels = [f"GPU{i}" for i in range(n_gpus)] + [f"mlx5_{i}" for i in range(n_gpus)]

    def word(a, b):
        if a == b:
            return "X"
        if a < n_gpus and b < n_gpus:
            return "NV18"
        a, b = a % n_gpus, b % n_gpus
        return "PIX" if a // 2 == b // 2 else "NODE" if a * 2 // n_gpus == b * 2 // n_gpus else "SYS"

    numa = [i * 2 // n_gpus for i in range(n_gpus)]
    return {
        "hostname": "node1", "source": "live",
        "gpus": [{"index": i, "pci": f"0000:{0x10 + i:02x}:00.0", "numa": numa[i], "name": "H200"} for i in range(n_gpus)],
        "nics": [{"name": f"mlx5_{i}", "pci": f"0000:{0x40 + i:02x}:00.0", "numa": numa[i], "rdma": True,
                  "rate_Gbps": 400, "ports": []} for i in range(n_gpus)],
        "distances": {"labels": labels, "matrix": [[word(a, b) for b in range(2 * n_gpus)] for a in range(2 * n_gpus)]}}


def mapping(n_gpus=8):
    """Two PEs share the first NIC of each switch; one of them is far from its own."""
    nic = [i - i % 2 for i in range(n_gpus)]
    nic[n_gpus - 1] = 0
    return {
        "policy": "nvshmem", "version": "3.7.0", "world": "node", "load_factor": 3.0,
        "pes": [{"pe": i, "gpu": i, "used": 1, "chosen_by": "distance", "reason": "",
                 "nics": [{"device": f"mlx5_{nic[i]}", "port": 1, "distance": "SYS" if i == n_gpus - 1 else "PIX"}]}
                for i in range(n_gpus)],
        "nics": [{"device": f"mlx5_{i}", "port": 1, "pes": [p for p in range(n_gpus) if nic[p] == i],
                  "load": float(nic.count(i)), "load_factor": float(nic.count(i))} for i in range(n_gpus)]}


def hotspots(n_ports=8, hosts=("node1",)):
    """Loads of NICs; the first of each host is hot."""
    def direction(value):
        return {"GBps": value, "bytes": int(value * 1e9), "peak_GBps": value * 1.2, "link_share": value / 50,
                "counter": "port_xmit_data_bytes"}

    ports = [{"host": host, "device": f"mlx5_{i}", "port": 1, "netdev": f"ib{i}", "rdma": True, "fabric": True, "rail": i,
              "link_Gbps": 400, "window_s": 10.0, "direction": "both", "sent": direction(42.5 if i == 0 else 14.0 + i / 10),
              "received": direction(39.0 if i == 0 else 13.0 + i / 10), "hot": i == 0, "pes": [i]}
             for host in hosts for i in range(n_ports)]
    return {"mode": "command", "window_s": 10.0, "samples": 20, "thresholds": "built in", "ports": ports,
            "groups": [{"kind": "node", "name": host, "direction": "sent", "unit": "GB/s", "ports": n_ports, "median": 14.4,
                        "mad": 0.3, "skew": 2.4, "hot": [{"host": host, "device": "mlx5_0", "port": 1}], "low": [],
                        "unknown": []} for host in hosts],
            "signs": [{"host": "node1", "device": "mlx5_0", "port": 1, "counter": "np_ecn_marked_roce_packets", "delta": 81234,
                       "per_s": 8123.4, "limit": ">1000/s", "finding": "nic-congested", "severity": "warning",
                       "meaning": "the network marks packets: it is congested", "source": "vendor"}],
            "unavailable": []}


def moe_point(ranks, seed=1, slow=None, operations=("dispatch", "combine"), late=False):
    """A point of `moe` in which all wait for rank `slow`."""
    noise = random.Random(seed)

    def matrix(scale):
        # lognormvariate is slow for a million cells: a table of it is as good.
        table = [noise.lognormvariate(0, 0.25) * scale for _ in range(997)]
        return [[round(table[(i * 131 + j * 7) % 997] * (9 if j == slow else 1), 3) for j in range(ranks)] for i in range(ranks)]

    waits = []
    for operation in operations:
        wait = {"operation": operation, "wait_us": matrix(12), "verdicts": []}
        if slow is not None:
            wait["verdicts"] = [f"PE {slow} is slow: the others wait for it"]
        if late:
            wait["late_us"] = matrix(3)
        waits.append(wait)
    traffic = {"logical_bytes": [1 << 27] * ranks, "sent_bytes": [1 << 26] * ranks, "crossing_bytes": [1 << 25] * ranks}
    return {"params": {"mode": "ht", "tokens": 4096, "routing": "uniform"}, "seed": 1, "routing_hash": "5a19acccf26325f3",
            "tokens": [4096] * ranks, "received_rows": [8161] * ranks, "verified_iterations": 3, "memory": [],
            "dispatch": traffic, "combine": traffic, "waits": waits}


def links(n_gpus=8, slow=(2, 5)):
    """Copies between all pairs of GPUs, one of them slow."""
    return [row("gpu-link", {"source": f"GPU{a}", "target": f"GPU{b}", "size_bytes": 64 << 20, "declared": "NV18"},
                64 * 1.048576 / speed * 1e3, speed)
            for a in range(n_gpus) for b in range(n_gpus) if a != b
            for speed in [160.0 if (a, b) == slow else 370.0 + (a * 3 + b) % 5]]


def full():
    """A node with something in every section."""
    rows = links() + sweep("put", 1.2, 50, scope="block") + sweep("put", 2.2, 50, scope="thread") + sweep("get", 2.5, 50)
    rows.append(row("moe-dispatch", {"tokens": 4096}, 194, 600))
    return report(
        rows, exit_code=1, command=("check",), topology=topology(), mapping=mapping(), hotspots=hotspots(),
        moe=[moe_point(8, slow=3)],
        phases=[{"name": "bootstrap", "time_ms": 12.5, "slowest_pe": 1}],
        checks=[{"id": "memlock", "group": "memory", "title": "locked memory", "status": "pass", "reason": "unlimited",
                 "evidence": "RLIMIT_MEMLOCK", "fix": ""},
                {"id": "peer-memory", "group": "gpu", "title": "GPU memory registration", "status": "fail",
                 "reason": "no module is loaded", "evidence": "/proc/modules", "fix": "modprobe nvidia_peermem"}],
        nic_counters=[{"host": "node1", "device": f"mlx5_{i}", "port": 1, "counter": name, "before": 10, "after": 10 + delta,
                       "delta": delta} for i in range(8) for name, delta in
                      (("port_xmit_data_bytes", 10**9 * (3 if i == 0 else 1)), ("out_of_sequence", 17 * (i == 0)), ("symbol_error", 0))],
        findings=[{"id": "numa-unknown", "severity": "info", "subject": "GPU1", "message": "NUMA node of GPU1 is unknown",
                   "fix": "look at the BIOS"},
                  {"id": "nic-hotspot", "severity": "error", "subject": "mlx5_0/1",
                   "message": "PE 0, 1 and 7 share mlx5_0/1 while mlx5_1/1 is idle: at most a third of the bandwidth each",
                   "fix": "export NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1"},
                  {"id": "nic-congested", "severity": "warning", "subject": "node1 mlx5_0:1",
                   "message": "81234 ECN marks in 10 s", "fix": "spread the PEs over the NICs"}])


def series(runs=6):
    """The same rows in run after run; the last one is slower."""
    return [report(sweep("put", 1.2, 50, factor=1 + 0.01 * (i % 3) + (0.3 if i == runs - 1 else 0)),
                   start=f"2026-11-{10 + i:02d}T03:33:00Z") for i in range(runs)]


def cluster(nodes=64, gpus=8):
    """64 x 8 GPUs: matrices of 512 x 512 and 20 sweeps."""
    pes = nodes * gpus
    rows = [line for i in range(20) for line in sweep(f"case-{i:02d}", 1 + i, 50, scope="block")]
    hosts = [f"node{i:02d}" for i in range(nodes)]
    return report(rows, command=("moe",), job={"pes": pes, "nodes": nodes, "bootstrap": "pmix", "launcher": "srun"},
                  hosts=[{"name": host} for host in hosts], topology=topology(), mapping=mapping(),
                  hotspots=hotspots(8, hosts), moe=[moe_point(pes, slow=77, operations=("dispatch", "cached dispatch", "combine"))])


def hostile(value, text=HOSTILE):
    """The document with `text` at the end of every text that the schema leaves open, and of names of parameters."""
    words = {"status", "severity", "verified", "started_at", "finished_at", "direction", "kind", "mode", "unit", "distance",
             "policy", "world", "pci", "id", "routing_hash"}
    if isinstance(value, list):
        # What is no "GPU0" is no GPU.
        return [item if isinstance(item, str) and item.startswith("GPU") else hostile(item, text) for item in value]
    if isinstance(value, str):
        return value + text
    if not isinstance(value, dict):
        return value
    made = {}
    for key, item in value.items():
        if key in ("schema", "matrix") or item == "shmemctl" or (key in words and isinstance(item, str)):
            made[key] = item
        elif key in ("params", "env", "versions", "build"):
            made[key] = {name + text if name != "size_bytes" else name: hostile(one, text) for name, one in item.items()}
        else:
            made[key] = hostile(item, text)
    return made
