#include "tests/unit/reports/samples.h"

namespace shmemctl {

using nlohmann::json;

json sample_topology() {
  return json::parse(R"({
    "hostname": "node7", "source": "hwloc-xml", "notes": [],
    "gpus": [
      {"index": 0, "pci": "0000:18:00.0", "numa": 0, "name": "GPU A", "uuid": null,
       "uuid_reason": "no driver", "vendor": "nvidia", "cpu_affinity": "0-15"},
      {"index": 1, "pci": "0000:2a:00.0", "numa": null, "numa_reason": "numa_node reads -1",
       "vendor": "nvidia", "cpu_affinity": null, "cpu_affinity_reason": "numa_node reads -1"}],
    "nics": [
      {"name": "mlx5_0", "pci": "0000:19:00.0", "numa": 0, "rdma": true, "link_layer": "infiniband",
       "rate_Gbps": 400.0,
       "pcie": {"speed_GTps": 32.0, "width": 16, "max_speed_GTps": 32.0, "max_width": 16},
       "ports": [{"number": 1, "state": "active", "link_layer": "infiniband", "rate_Gbps": 400.0,
                  "gids": []}]},
      {"name": "mlx5_1", "pci": null, "pci_reason": "not in the dump", "numa": 0, "rdma": null,
       "rdma_reason": "not told", "ports": []}],
    "other_nics": [{"name": "eth0", "pci": "0000:01:00.0", "numa": 0, "rdma": false, "ports": []}],
    "distances": {
      "labels": ["GPU0", "GPU1", "mlx5_0", "mlx5_1"],
      "matrix": [["X", "NV18", "PIX", null], ["NV18", "X", "SYS", null],
                 ["PIX", "SYS", "X", null], [null, null, null, "X"]],
      "unknown": [{"reason": "no PCI address known",
                   "cells": [[0, 3], [1, 3], [2, 3], [3, 0], [3, 1], [3, 2]]}]}})");
}

json sample_mapping() {
  return json::parse(R"({
    "policy": "nvshmem", "version": "3.5.0", "generation": "E", "world": "node",
    "load_factor": 2.0,
    "pes": [
      {"pe": 0, "gpu": 0, "nics": [{"device": "mlx5_0", "port": 1, "distance": "PIX"}], "used": 1,
       "chosen_by": "distance", "reason": ""},
      {"pe": 1, "gpu": 1, "nics": [{"device": "mlx5_0", "port": 1, "distance": "SYS"}], "used": 1,
       "chosen_by": "distance", "reason": ""}],
    "nics": [{"device": "mlx5_0", "port": 1, "pes": [0, 1], "load": 2.0, "load_factor": 2.0},
             {"device": "mlx5_1", "port": 1, "pes": [], "load": 0.0, "load_factor": 0.0}],
    "table": [{"device": "mlx5_0", "port": 1}],
    "exclusions": [{"device": "mlx5_2", "port": 1, "reason": "the port is down"}],
    "list": null,
    "advice": [{"world": "node", "library": "nvshmem",
                "lines": ["export NVSHMEM_ENABLE_NIC_PE_MAPPING=1"], "note": ""}]})");
}

json sample_comparison() {
  return json::parse(R"({
    "base": {"files": ["base.json"], "runs": 1, "rows": 2},
    "new": {"files": ["a.json", "b.json"], "runs": 2, "rows": 1},
    "alpha": 0.05, "min_effect": 0.05,
    "differences": [{"what": "kernel", "base": ["6.1"], "new": []}],
    "counts": {"better": 0, "worse": 1, "same": 0, "unclear": 0, "missing": 1, "new": 0},
    "rows": [
      {"case": "put", "params": {"size_bytes": 4096}, "verdict": "worse", "unit": "us",
       "base": {"value": 1.5, "samples": 50, "runs": 1},
       "new": {"value": 3.0, "samples": 100, "runs": 2},
       "change": 1.0, "change_low": 0.9, "change_high": 1.1, "p": 0.0001, "p_adjusted": 0.0001,
       "test": "samples and runs"},
      {"case": "get", "params": {}, "hosts": ["node7"], "verdict": "missing", "unit": "us",
       "reason": "not in NEW", "base": {"samples": 0, "runs": 1}}]})");
}

json sample_hotspots() {
  return json::parse(R"({
    "mode": "time", "window_s": 10.0, "samples": 20, "thresholds": "built in",
    "ports": [
      {"host": "node7", "device": "mlx5_0", "port": 1, "netdev": "ib0", "rdma": true,
       "fabric": true, "rail": 0, "link_Gbps": 400.0, "window_s": 10.0, "direction": "sent",
       "sent": {"GBps": 40.0, "bytes": 400000000000, "peak_GBps": 44.5, "link_share": 0.8,
                "counter": "port_xmit_data_bytes"},
       "received": {"GBps": 1.0, "bytes": 10000000000, "link_share": 0.02},
       "hot": true, "pes": [0, 1]},
      {"host": "node7", "device": "eth0", "port": 1, "netdev": "eth0", "rdma": false,
       "fabric": false, "link_Gbps": null, "link_Gbps_reason": "not told", "window_s": 10.0,
       "direction": "unknown", "sent": {"GBps": null, "GBps_reason": "it was reset"},
       "received": {"GBps": null, "GBps_reason": "it was reset"}, "hot": false, "pes": null,
       "pes_reason": "no mapping was asked for"}],
    "groups": [{"kind": "node", "name": "node7", "direction": "sent", "unit": "GB/s", "ports": 1,
                "median": 40.0, "mad": 0.0, "skew": 1.0, "hot": [], "low": [], "unknown": []}],
    "signs": [{"host": "node7", "device": "mlx5_0", "port": 1, "counter": "out_of_sequence",
               "delta": 200, "per_s": 20.0, "limit": ">10/s", "finding": "nic-lossy",
               "severity": "warning", "meaning": "packets came out of order", "source": "vendor"}],
    "unavailable": [{"host": "node7", "device": "eth0", "port": 1, "counter": "tx_bytes",
                     "reason": "it was reset"}]})");
}

Report sample_report() {
  Report report;
  report.started_at = "2026-11-21T03:33:00.123Z";
  report.finished_at = "2026-11-21T03:33:01Z";
  report.command = {"shmemctl", "topo", "--from", "node.xml"};
  report.status = ReportStatus::complete;
  report.exit_code = ExitCode::finding;
  report.hosts = json::parse(R"([{"name": "node7", "kernel": "6.1.0",
    "gpus": [{"index": 0, "uuid": "GPU-1", "pci": "0000:18:00.0", "numa": 0}],
    "hcas": [{"name": "mlx5_0", "port": 1, "firmware": null, "firmware_reason": "not told",
              "rate_Gbps": 400, "link_width": 16, "link_speed_GTps": 32}],
    "versions": {"libibverbs": null, "nvidia_driver": "550.54"}}])");
  report.env = {{"HCA_LIST", "mlx5_0"}};
  report.topology = sample_topology();
  report.mapping = sample_mapping();
  report.phases = {{"bootstrap", 12.5, 1}, {"heap", 0.75, 0}};
  report.measurement = {
      "CLOCK_MONOTONIC",
      1,
      22.5,
      {{0, "node7", "0", 0, "bench"}, {1, "node8", "0-63", std::nullopt, "nobody"}}};
  report.checks = {
      {"memlock", "locked memory", "pass", "unlimited", "RLIMIT_MEMLOCK", "", "memory"},
      {"peer-memory", "GPU memory registration", "fail", "no module is loaded", "/proc/modules",
       "modprobe nvidia_peermem", "gpu"}};
  ResultRow row;
  row.case_name = "put";
  row.params = {{"size_bytes", 4096}, {"scope", "block"}};
  row.stats = Stats{50, 1.0, 1.5, 2.0, std::nullopt, 3.0, 1.6, 0.2, 0.15};
  row.unit = "us";
  row.bandwidth_GBps = 12.5;
  row.rate_Mops = 0.625;
  row.wire_GBps = 9.375;
  row.link_fraction = 0.25;
  row.limited_by = "mlx5_0/1";
  row.verified = Verified::passed;
  row.samples = {1.0, 1.5, 3.0};
  report.results = {row};
  row.verified = Verified::unchecked;
  row.status = RowStatus::skip;
  row.reason = "no peer";
  row.stats.reset();
  row.samples.clear();
  row.bandwidth_GBps.reset();
  row.rate_Mops.reset();
  row.wire_GBps.reset();
  row.link_fraction.reset();
  row.limited_by.reset();
  report.results.push_back(row);
  const json traffic{
      {"logical_bytes", {4096, 8192}}, {"sent_bytes", {2048, 4096}}, {"crossing_bytes", {0, 0}}};
  report.moe = json::array(
      {{{"params", {{"tokens", 128}, {"mode", "ht"}}},
        {"seed", 1},
        {"routing_hash", "0123456789abcdef"},
        {"tokens", {128, 0}},
        {"received_rows", {100, 28}},
        {"verified_iterations", 3},
        {"memory",
         {{{"what", "received rows"}, {"formula", "ranks * max_tokens"}, {"size_bytes", 4096}}}},
        {"dispatch", traffic},
        {"combine", traffic},
        {"waits",
         {{{"operation", "dispatch"},
           {"wait_us", {{0, 1.5}, {2.5, 0}}},
           {"verdicts", {"PE 1 is slow"}}}}}}});
  report.nic_counters = {
      {"node7", "mlx5_0", "port_xmit_data_bytes", 1, 10, 30, 20},
      {"node7", "mlx5_0", "port_rcv_data_bytes", 1, 10, std::nullopt, std::nullopt}};
  report.findings = {{"nic-hotspot", Severity::error, "mlx5_0", "PE 0 and PE 1 share mlx5_0",
                      "export NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1"},
                     {"numa-unknown", Severity::warning, "GPU1", "NUMA node of GPU1 is unknown",
                      "look at the BIOS"}};
  return report;
}

Report sample_full_report() {
  Report report = sample_report();
  RunInfo run;
  run.started_at = report.started_at;
  run.hosts = {"node7"};
  run.command = {"shmemctl", "topo"};
  run.tool_version = "0.1.0";
  report.runs = {run};
  report.results[0].run = 0;
  report.comparison = sample_comparison();
  report.thresholds = json::parse(
      R"([{"expression": "put.p50_us<3", "source": "--require", "rows": 1, "failed": 0,
           "worst": 1.5, "passed": true}])");
  return report;
}

} // namespace shmemctl
