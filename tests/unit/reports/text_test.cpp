#include "reports/text.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "reports/json_view.h"
#include "reports/result_table.h"
#include "src/base/text.h"
#include "test_paths.h"
#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

using nlohmann::json;

TextStyle verbose_style() {
  TextStyle style;
  style.verbose = true;
  return style;
}

std::string text_of(const Report& report, const TextStyle& style = {}) {
  std::ostringstream out;
  write_text(out, report, style);
  return out.str();
}

TEST(TopologyText, IsLaidOutLikeNvidiaSmi) {
  EXPECT_EQ(
      topology_text(sample_topology(), verbose_style()),
      "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV18\tPIX\t?\t0-15\t0\t\tN/A\n"
      "GPU1\tNV18\t X \tSYS\t?\tN/A\tN/A\t\tN/A\n"
      "NIC0\tPIX\tSYS\t X \t?\t\t\t\t\n"
      "NIC1\t?\t?\t?\t X \t\t\t\t\n"
      "\n"
      "Legend:\n"
      "\n"
      "  X    = Self\n"
      "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "
      "(e.g., QPI/UPI)\n"
      "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host "
      "Bridges within a NUMA node\n"
      "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
      "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
      "Bridge)\n"
      "  PIX  = Connection traversing at most a single PCIe bridge\n"
      "  NV#  = Connection traversing a bonded set of # NVLinks\n"
      "\n"
      "NIC Legend:\n"
      "\n"
      "  NIC0: mlx5_0\n"
      "  NIC1: mlx5_1\n"
      "\n"
      "  ?    = Unknown: no PCI address known\n"
      "\n"
      "Other NICs (no RDMA): eth0\n");
}

/// A recorded matrix as a report's topology.
json topology_of(const std::vector<std::string>& lines) {
  json topology{{"gpus", json::array()}, {"nics", json::array()}};
  json matrix = json::array();
  json labels = json::array();
  for (const std::string& line : lines) {
    const std::vector<std::string> cells = split(line, '\t');
    const bool gpu = starts_with(cells[0], "GPU");
    if (cells.size() > 2 && (gpu || starts_with(cells[0], "NIC"))) {
      json row = json::array();
      for (std::size_t i = 1;
           i < cells.size() && !cells[i].empty() && cells[i].find_first_of("0123456789") != 0; ++i)
        row.push_back(std::string(trim(cells[i])));
      const std::size_t devices = row.size();
      if (gpu) {
        topology["gpus"].push_back(
            {{"cpu_affinity", cells[devices + 1]}, {"numa", std::stoi(cells[devices + 2])}});
        labels.push_back(cells[0]);
      }
      matrix.push_back(row);
    } else if (starts_with(line, "  NIC")) {
      labels.push_back(line.substr(line.find(": ") + 2));
      topology["nics"].push_back({{"name", labels.back()}});
    }
  }
  topology["distances"] = {{"labels", labels}, {"matrix", matrix}};
  return topology;
}

/// The lines of a recorded matrix without colours and without blanks at their ends.
std::vector<std::string> recorded_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    for (const char* code : {"\x1b[4m", "\x1b[0m"})
      if (const std::size_t at = line.find(code); at != std::string::npos)
        line.erase(at, std::string(code).size());
    line.erase(line.find_last_not_of("\t \r") + 1);
    lines.push_back(line);
  }
  while (!lines.empty() && lines.back().empty())
    lines.pop_back();
  return lines;
}

TEST(TopologyText, HasNoDifferenceToRecordedOutput) {
  const std::filesystem::path shared = std::filesystem::path(SHMEMCTL_SHARED) / "topologies";
  if (!std::filesystem::exists(shared))
    GTEST_SKIP() << "no recorded machines beside the checkout";
  // The recorded files that kept their tabs and have the columns of newer drivers.
  for (const char* name :
       {"v100-2x-phb/nvidia-smi-topo-m.s114.txt", "v100-2x-phb/nvidia-smi-topo-m.s116.txt",
        "a800-bond-vm/nvidia-smi-topo-m.txt", "h200-10nic-shuffled/topo.txt"}) {
    const std::vector<std::string> expected = recorded_lines(shared / name);
    ASSERT_GT(expected.size(), 10u) << name;
    std::vector<std::string> printed =
        split(topology_text(topology_of(expected), verbose_style()), '\n');
    for (std::string& line : printed)
      line.erase(line.find_last_not_of("\t ") + 1);
    ASSERT_GE(printed.size(), expected.size()) << name;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(printed[i], expected[i]) << name << ", line " << i + 1;
  }
}

TEST(TopologyText, IsByteForByteTheRecordedFileWhereThatKeptItsTabs) {
  const std::filesystem::path file =
      std::filesystem::path(SHMEMCTL_SHARED) / "topologies/v100-2x-phb/nvidia-smi-topo-m.s114.txt";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "no recorded machines beside the checkout";
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(trim(topology_text(topology_of(split(text.str(), '\n')), verbose_style())),
            trim(text.str()));
}

TEST(TopologyText, PrintsWhatIsThere) {
  EXPECT_EQ(topology_text(json(), {}), "");
  EXPECT_EQ(topology_text(json::object(), {}), "No GPU and no RDMA device.\n");
  const std::string ragged = topology_text(
      json::parse(R"({"gpus": [{}], "distances": {"labels": ["GPU0", "n"], "matrix": [["X"]]}})"),
      {});
  EXPECT_NE(ragged.find("GPU0\t X \t?\tN/A\tN/A\t\tN/A\n"), std::string::npos) << ragged;
  EXPECT_NE(ragged.find("NIC0\t?\t?\t"), std::string::npos);
  EXPECT_NE(ragged.find("does not say why"), std::string::npos);
}

TEST(MappingText, ShowsPesNicsAndLoads) {
  EXPECT_EQ(mapping_text(sample_report(), {}),
            "NICs by policy nvshmem 3.5.0, world node:\n"
            "PE  GPU  PCI           NUMA  NIC       distance  link           chosen by\n"
            " 0    0  0000:18:00.0     0  mlx5_0/1  PIX       400G x16 Gen5  distance\n"
            " 1    1  0000:2a:00.0     ?  mlx5_0/1  SYS       400G x16 Gen5  distance\n"
            "\n"
            "NIC       PEs  load  load factor\n"
            "mlx5_0/1  0,1  2.00         2.00\n"
            "mlx5_1/1  -    0.00         0.00\n"
            "load factor 2.00: the busiest NIC carries 2.00 times the even share\n");
}

TEST(MappingText, ShowsIdleNicsReasonsAndExclusions) {
  Report report;
  report.mapping = json::parse(R"({"policy": "nvshmem", "world": "deepep-ht", "pes": [
    {"pe": 0, "gpu": null, "gpu_reason": "none", "chosen_by": "", "reason": "no NIC is active", "nics": []},
    {"pe": 7, "gpu": 0, "used": 1, "chosen_by": "distance",
     "nics": [{"device": "a", "port": 1}, {"device": "b", "port": 2, "distance": "PXB"}]}],
    "nics": [{"device": "a", "port": 1, "pes": [0, 1, 2, 3, 9, 7, 8]}],
    "exclusions": [{"device": "c", "port": null, "port_reason": "all", "reason": "down"}]})");
  const std::string text = mapping_text(report, {});
  EXPECT_NE(text.find("none"), std::string::npos);
  EXPECT_NE(text.find("no NIC is active"), std::string::npos);
  EXPECT_NE(text.find("a/1 (+1 idle)"), std::string::npos) << text;
  EXPECT_NE(text.find("0-3,7-9"), std::string::npos) << text;
  EXPECT_EQ(text.find("Not considered"), std::string::npos);
  TextStyle verbose;
  verbose.verbose = true;
  const std::string all = mapping_text(report, verbose);
  EXPECT_NE(all.find("a/1, b/2"), std::string::npos) << all;
  EXPECT_NE(all.find("Not considered:\n  c: down\n"), std::string::npos) << all;
}

TEST(TopologyText, HasABriefLegendUnlessMoreIsAskedFor) {
  const std::string text = topology_text(sample_topology(), {});
  EXPECT_NE(text.find("SYS between NUMA nodes"), std::string::npos) << text;
  EXPECT_EQ(text.find("Connection traversing"), std::string::npos) << text;
}

TEST(MappingText, ListsNoNicsThatAllCarryTheSame) {
  Report report;
  report.mapping = json::parse(
      R"({"policy": "nvshmem", "world": "node", "load_factor": 1, "pes": [{"pe": 0}], "nics": [
    {"device": "a", "port": 1, "pes": [0], "load": 1, "load_factor": 1},
    {"device": "b", "port": 1, "pes": [1], "load": 1, "load_factor": 1}]})");
  EXPECT_EQ(mapping_text(report, {}).find("a/1"), std::string::npos);
  EXPECT_NE(mapping_text(report, verbose_style()).find("a/1"), std::string::npos);
  report.mapping["nics"][1]["load"] = 0;
  EXPECT_NE(mapping_text(report, {}).find("b/1"), std::string::npos);
}

TEST(MappingText, SaysWhenThereIsNoPe) {
  Report report;
  report.mapping = json::parse(R"({"policy": "nvshmem", "world": "node", "pes": []})");
  EXPECT_EQ(mapping_text(report, {}).find("No PE to map"), 0u);
}

TEST(AdviceText, CanBePasted) {
  EXPECT_EQ(advice_text(sample_mapping(), verbose_style()),
            "Best for nvshmem, world node:\n  export NVSHMEM_ENABLE_NIC_PE_MAPPING=1\n");
}

TEST(AdviceText, IsOfTheShownWorldWhereTheBestMappingIsShown) {
  json mapping = sample_mapping();
  EXPECT_EQ(advice_text(mapping, {}), "");
  mapping["policy"] = "optimal";
  mapping["advice"].push_back(mapping["advice"][0]);
  mapping["advice"][1]["world"] = "deepep-ht";
  mapping["advice"].push_back(mapping["advice"][0]);
  mapping["advice"][2]["library"] = "nccl";
  EXPECT_EQ(advice_text(mapping, {}),
            "Best for nvshmem, world node:\n  export NVSHMEM_ENABLE_NIC_PE_MAPPING=1\n");
}

TEST(ChecksText, EvidenceAndFixOnlyWhereItDidNotPass) {
  const Report report = sample_report();
  EXPECT_EQ(checks_text(report.checks, {}), "memory\n"
                                            "[\xe2\x9c\x93] memlock      unlimited\n"
                                            "\n"
                                            "gpu\n"
                                            "[\xe2\x9c\x97] peer-memory  no module is loaded\n"
                                            "    read: /proc/modules\n"
                                            "    fix: modprobe nvidia_peermem\n");
  TextStyle style;
  style.utf8 = false;
  style.verbose = true;
  EXPECT_EQ(checks_text({report.checks[0]}, style), "memory\n"
                                                    "[ok]   memlock  unlimited\n"
                                                    "       checks: locked memory\n"
                                                    "       read: RLIMIT_MEMLOCK\n");
}

TEST(ChecksText, OfAMergedReportSaysWhichHostTheyAreOf) {
  CheckRow check = sample_report().checks[0];
  std::vector<CheckRow> checks(3, check);
  for (int run = 0; run < 3; ++run)
    checks[static_cast<std::size_t>(run)].run = run;
  std::vector<RunInfo> runs(3);
  runs[0].hosts = {"node1"};
  runs[1].hosts = runs[2].hosts = {"node2"};
  const std::string line = "[\xe2\x9c\x93] memlock  unlimited\n";
  EXPECT_EQ(checks_text(checks, {}, runs), "memory on node1\n" + line +
                                               "\nmemory on node2 (run 1)\n" + line +
                                               "\nmemory on node2 (run 2)\n" + line);
  // Skipped for the same reason, but on two hosts.
  checks.resize(2);
  for (CheckRow& each : checks)
    each.status = "skipped";
  EXPECT_EQ(checks_text(checks, {}, runs).find("2 checks"), std::string::npos);
  runs.resize(1); // another program's report may name a run that it does not contain
  EXPECT_NE(checks_text(checks, {}, runs).find("memory on node1\n"), std::string::npos);
}

TEST(ResultsText, WhatRowsHaveInCommonStandsAboveThem) {
  std::vector<ResultRow> results = sample_report().results;
  EXPECT_NE(results_text(results, {}).find("GB/s  GB/s wire"), std::string::npos);
  results[0].wire_GBps.reset();
  EXPECT_EQ(results_text(results, {}),
            "put\n"
            "  scope block; limit: mlx5_0/1\n"
            "size  min [us]  p50 [us]  p99 [us]  max [us]  Mop/s  GB/s  of limit  verified\n"
            "  4K         1       1.5         -         3  0.625  12.5     25.0%  passed\n"
            "  4K         -         -         -         -      -     -         -  skipped\n"
            "put: skipped: no peer\n"
            "p99 takes 100 samples: measure longer for it\n");
  TextStyle style;
  style.gigabits = true;
  EXPECT_NE(results_text(results, style).find("Gb/s"), std::string::npos);
  EXPECT_NE(results_text(results, style).find("  100     25.0%"), std::string::npos)
      << results_text(results, style);
}

/// As bench measures them: every column that it has.
ResultRow wide_row() {
  ResultRow row;
  row.case_name = "put";
  row.params = {{"size_bytes", 4194304}, {"window", 64},      {"batch", 262144}, {"pes", 16},
                {"traffic", "pair"},     {"direction", "uni"}};
  row.unit = "us";
  row.stats = Stats{};
  row.stats->min = row.stats->p50 = row.stats->p99 = row.stats->max = 0.0024841;
  row.stats->p999 = 0.0024849;
  row.rate_Mops = 0.00010001;
  row.bandwidth_GBps = 0.00010001;
  row.link_fraction = 1.212;
  row.limited_by = "memcpy of the same size";
  row.limit_note = "above its limit: because";
  row.reason = "verification is switched off";
  row.windows = RowWindows{1, 20, 0.0001, 1.0};
  row.path = RowPath{PathEnd{0, "a"}, PathEnd{2, "b"}, {"libfabric"}, {"eth0"}};
  return row;
}

int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string& line : split(text, '\n'))
    widest = std::max(widest, display_width(line));
  return widest;
}

TEST(ResultsText, RowsAreAtMostAHundredColumnsWide) {
  ResultRow row = wide_row();
  ResultRow collective = row;
  collective.params.erase("window");
  collective.windows.reset();
  collective.rate_Mops.reset();
  collective.algbw_GBps = collective.busbw_GBps = 0.00010001;
  for (const bool p999 : {false, true})
    for (const ResultRow& one : {row, collective}) {
      TextStyle style;
      style.p999 = p999;
      LiveResults live({"size_bytes", "window"}, style);
      EXPECT_LE(widest_line(live.add(one)), 100) << live.add(one);
      EXPECT_LE(widest_line(results_text({one, one}, style)), 100);
    }
}

TEST(ResultsText, WhyThereIsNoP99IsSaidOnce) {
  ResultRow row = wide_row();
  row.stats->n = 20;
  row.stats->p99.reset();
  ResultRow other = row;
  other.case_name = "get";
  const std::string text = results_text({row, other}, {});
  const std::string words = "p99 takes 100 samples: measure longer for it\n";
  ASSERT_NE(text.find(words), std::string::npos) << text;
  EXPECT_EQ(text.find(words), text.rfind(words)) << text;
  row.stats->p99 = 1;
  row.stats->n = 100;
  EXPECT_EQ(results_text({row}, {}).find("p99 takes"), std::string::npos);
}

TEST(LiveResults, PrintHeadersOnceAndARowAtATime) {
  ResultRow row = wide_row();
  row.windows.reset();
  row.limit_note = "";
  LiveResults live({"size_bytes", "window"}, {});
  const std::string first = live.add(row);
  EXPECT_EQ(first,
            "put: PE 0 (a) -> PE 2 (b) by libfabric eth0\n"
            "  direction uni, pes 16, traffic pair; limit: memcpy of the same size\n"
            "  size  window  min [us]  p50 [us]  p99 [us]  max [us]     Mop/s      GB/s  of limit  "
            "verified\n"
            "    4M      64  0.002484  0.002484  0.002484  0.002484    0.0001    0.0001    121.2%  "
            "unchecked\n");
  row.params["size_bytes"] = 8;
  row.params["window"] = 32;
  row.params["batch"] = 1;
  EXPECT_EQ(live.add(row).find('\n'), live.add(row).size() - 1) << "no second header";
  // A row whose values have no column, or whose path is another one, brings headers along.
  row.wire_GBps = 1;
  EXPECT_NE(live.add(row).find("GB/s wire"), std::string::npos);
  row.path->transports = {"ucx"};
  EXPECT_NE(live.add(row).find("by ucx"), std::string::npos);
  ResultRow other = row;
  other.case_name = "get";
  EXPECT_EQ(live.add(other).find("get: PE 0 (a)"), 0u) << "a case has its own headers";
  EXPECT_EQ(live.end(), "put, get: not verified: verification is switched off\n");
}

TEST(LiveResults, WithVerboseTheBatchIsAColumnAndEndsNoTable) {
  ResultRow row = wide_row();
  row.windows.reset();
  row.limit_note = "";
  row.params["batch"] = 131072;
  TextStyle style;
  style.verbose = true;
  LiveResults live({"size_bytes", "window"}, style);
  const std::string first = live.add(row);
  EXPECT_NE(first.find("\n  size  window     batch  min [us]"), std::string::npos) << first;
  EXPECT_NE(first.find("\n    4M      64    131072  "), std::string::npos) << first;
  EXPECT_EQ(first.find("batch 131072"), std::string::npos) << first;
  row.params["batch"] = 4;
  const std::string second = live.add(row);
  EXPECT_EQ(second.find("    4M      64         4  "), 0U) << second;
  EXPECT_EQ(second.find('\n'), second.size() - 1) << "no second header";
}

TEST(LiveResults, ARowWithoutTimesNeedsNoColumns) {
  ResultRow row = wide_row();
  LiveResults live({"size_bytes", "window"}, {});
  live.add(row);
  ResultRow skipped;
  skipped.case_name = "put";
  skipped.params = {{"size_bytes", 8}, {"pes", 16}, {"traffic", "pair"}, {"direction", "uni"}};
  skipped.status = RowStatus::skip;
  skipped.reason = "PE 1: it shares no memory";
  const std::string text = live.add(skipped);
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  EXPECT_NE(live.end().find("put: skipped: PE 1: it shares no memory\n"), std::string::npos);
}

TEST(ResultsText, CasesWithoutSizesShareATable) {
  ResultRow row = wide_row();
  row.params = {{"pes", 2}, {"traffic", "collective"}};
  row.case_name = "barrier";
  ResultRow other = row;
  other.case_name = "sync";
  const std::string text = results_text({row, other}, {});
  EXPECT_NE(text.find("\ncase     min [us]"), std::string::npos) << text;
  EXPECT_NE(text.find("\nsync     "), std::string::npos) << text;
  EXPECT_EQ(text.find("of limit", text.find("of limit") + 1), std::string::npos) << text;
  other.params["size_bytes"] = row.params["size_bytes"] = 8;
  const std::string apart = results_text({row, other}, {});
  EXPECT_NE(apart.find("of limit", apart.find("of limit") + 1), std::string::npos) << apart;
}

TEST(ResultsText, AHistogramIsDrawnBelow) {
  ResultRow row = wide_row();
  row.histogram = {{1, 2, 40}, {2, 4, 1}, {4, 8, 0}};
  const std::string text = results_text({row}, {});
  EXPECT_NE(text.find("put 4M, all samples\n"), std::string::npos) << text;
  EXPECT_NE(text.find("   1        2       40  " + std::string(40, '#') + "\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("   2        4        1  #\n"), std::string::npos) << text;
}

TEST(JobText, SaysWhatWasRunAndWhere) {
  Report report = sample_report();
  report.tool.version = "1.2.3";
  report.tool.git_revision = "abc";
  report.tool.git_dirty = true;
  report.started_at = "2026-11-26T10:00:00.000Z";
  report.command = {"shmemctl", "bench", "put"};
  report.job = {4, 2, "pmix", "mpirun", {"mpirun", "-n", "4", "shmemctl", "bench", "a b"}};
  report.hosts = json::array({{{"name", "n0"}}, {{"name", "n1"}}});
  report.measurement = Measurement{"c", 1, 1, {}};
  for (int pe = 0; pe < 4; ++pe)
    report.measurement->pinning.push_back({pe, "n0", std::to_string(pe), 0, "bench"});
  EXPECT_EQ(
      job_text(report, {"H100", "H100", "", "H200"}, {}, "PE 0 (n0) -> PE 2 (n1) by ibrc mlx5_0"),
      "shmemctl 1.2.3 (abc, dirty), 2026-11-26T10:00:00.000Z\n"
      "  command  mpirun -n 4 shmemctl bench 'a b'\n"
      "  job      4 PEs on 2 nodes (n0, n1), started by mpirun, bootstrap pmix\n"
      "  CPUs     PE 0 on CPU 0, PE 1 on CPU 1, PE 2 on CPU 2, PE 3 on CPU 3, pinned by bench\n"
      "  GPUs     H100 (PE 0 to 1), H200 (PE 3)\n"
      "  path     PE 0 (n0) -> PE 2 (n1) by ibrc mlx5_0\n");
  report.job.command.clear();
  report.measurement->pinning.resize(1);
  for (int pe = 0; pe < 40; ++pe)
    report.measurement->pinning.push_back({pe, "n0", "0-3", 0, "nobody"});
  const std::string text = job_text(report, {}, {});
  EXPECT_NE(text.find("command  shmemctl bench put\n"), std::string::npos) << text;
  EXPECT_NE(text.find("33 more,"), std::string::npos) << text;
  EXPECT_EQ(text.find("  path "), std::string::npos) << text;
  EXPECT_LE(widest_line(text), 100) << text;
}

TEST(JobText, SaysWhichNetworkJoinsTheNodes) {
  Report report;
  report.hosts = json::parse(R"([{"name": "n0", "nodes": [0]}, {"name": "n1", "nodes": [1]},
                                 {"name": "n2", "nodes": [2]}])");
  report.job.nodes = 3;
  for (int i = 0; i < 6; ++i) {
    NetworkRow row;
    row.transport = "libfabric";
    row.links = {{{"eth" + std::to_string(i), 1}, {"ib0", 1}}};
    row.first = {0};
    row.second = {1, 2};
    row.pairs = 2;
    report.networks.push_back(row);
  }
  EXPECT_NE(job_text(report, {}, {}, "PE 0 (n0) -> PE 1 (n1) by libfabric eth0")
                .find("  network  n0 <-> n[1-2] by libfabric eth0 <-> ib0\n"
                      "           n0 <-> n[1-2] by libfabric eth1 <-> ib0\n"
                      "           n0 <-> n[1-2] by libfabric eth2 <-> ib0\n"
                      "           n0 <-> n[1-2] by libfabric eth3 <-> ib0\n"
                      "           and 2 more\n"),
            std::string::npos);
  report.job.nodes = 2;
  EXPECT_EQ(job_text(report, {}, {}, "PE 0 (n0) -> PE 1 (n1)").find("network"), std::string::npos);
  EXPECT_NE(job_text(report, {}, {}).find("network"), std::string::npos);
}

TEST(ResultsText, AReasonForNoShareStandsOnceBelowTheTable) {
  Report report = sample_full_report();
  ResultRow row = report.results.at(0);
  row.link_fraction.reset();
  row.limited_by.reset();
  EXPECT_EQ(results_text({row}, {}).find("put: "), std::string::npos);
  row.limit_reason = "no limit is known for\x1b this";
  ResultRow other = row;
  other.case_name = "get";
  ResultRow known = report.results.at(0);
  known.limit_reason = "not said of what has a share";
  const std::string text = results_text({row, other, row, known}, {});
  const std::string reason = ": " + safe_text(row.limit_reason) + "\n";
  for (const char* name : {"\nput", "\nget"}) // each below the rows of its case
    EXPECT_NE(text.find(name + reason), std::string::npos) << text;
}

TEST(ResultsText, ThePathIsAboveTheTable) {
  ResultRow row = sample_full_report().results.at(0);
  row.case_name = "put";
  row.path = RowPath{PathEnd{0, "a"}, PathEnd{2, "b"}, {"libfabric"}, {"eth0"}};
  ResultRow other = row;
  other.case_name = "get";
  const std::string two = results_text({row, other}, {});
  EXPECT_EQ(two.find("put: PE 0 (a) -> PE 2 (b) by libfabric eth0\n"), 0u) << two;
  EXPECT_NE(two.find("\nget: PE 0 (a) -> PE 2 (b) by libfabric eth0\n"), std::string::npos) << two;
  std::vector<ResultRow> matrix;
  for (int pe = 1; pe < 20; ++pe) {
    matrix.push_back(row);
    matrix.back().path->second->pe = pe;
    matrix.back().path->transports = {pe < 8 ? "shm" : "libfabric"};
  }
  const std::string text = results_text(matrix, {});
  EXPECT_EQ(text.find("PE 0 ("), std::string::npos);
  EXPECT_NE(text.find("put: by libfabric eth0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("put: by shm eth0\n"), std::string::npos) << text;
}

TEST(ResultsText, AShareAboveItsLimitIsMarked) {
  ResultRow row = sample_full_report().results.at(0);
  row.link_fraction = 1.212;
  row.limited_by = "memcpy of the same size";
  row.limit_note = "above its limit: because";
  const std::string text = results_text({row}, {});
  EXPECT_NE(text.find("limit: memcpy of the same size\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  121.2%!  "), std::string::npos) << text;
  EXPECT_NE(text.find(row.case_name + ": ! above its limit: because\n"), std::string::npos) << text;
}

/// Limits that were measured have texts of 100 columns and more.
TEST(ResultsText, TwoLimitsOfATableStandAboveIt) {
  ResultRow row = sample_full_report().results.at(0);
  row.link_fraction = 0.5;
  row.limited_by = "NVLink, 18 links: 352 GB/s in each direction, measured";
  ResultRow other = row;
  other.limited_by = "NVLink, 18 links: 353 GB/s in each direction, measured";
  const std::string text = results_text({row, other}, {});
  EXPECT_NE(text.find("limit: NVLink, 18 links: 352"), std::string::npos) << text;
  EXPECT_NE(text.find("limit 2: NVLink, 18"), std::string::npos) << text;
  EXPECT_NE(text.find(" 50.0% of 2 "), std::string::npos) << text;
  EXPECT_LE(widest_line(text), 100) << text;
}

TEST(ResultsText, WhatOtherHostsSentIsPrintedSafe) {
  const std::string hostile = "\x1b]0;title\a\r\xc2\x9b\xe2\x80\xae";
  ResultRow row = sample_full_report().results.at(0);
  row.case_name = row.unit = row.reason = row.limit_note = row.limit_reason = hostile;
  row.limited_by = hostile;
  row.link_fraction = 2;
  row.params[hostile] = hostile;
  row.path = RowPath{PathEnd{0, hostile}, PathEnd{2, hostile}, {hostile}, {hostile}};
  const std::string text = results_text({row}, {});
  for (const char* bad : {"\x1b", "\a", "\r", "\xc2\x9b", "\xe2\x80\xae"})
    EXPECT_EQ(text.find(bad), std::string::npos) << text;
}

TEST(FindingsText, MarkIdMessageFix) {
  EXPECT_EQ(findings_text(sample_report().findings, {}),
            "[x] nic-hotspot  PE 0 and PE 1 share mlx5_0\n"
            "    fix: export NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1\n"
            "[!] numa-unknown  NUMA node of GPU1 is unknown\n"
            "    fix: look at the BIOS\n");
  EXPECT_EQ(findings_text({{"a", Severity::info, "s", "m", "f"}}, {}), "[i] a  m\n    fix: f\n");
}

TEST(FindingsText, ColourIsOnlyInTheMarkAndLinesFitTheTerminal) {
  TextStyle style;
  style.color = true;
  style.width = 30;
  EXPECT_EQ(findings_text({sample_report().findings[0]}, style),
            "\x1b[31m[x]\x1b[0m nic-hotspot  PE 0 and PE 1\n"
            "    share mlx5_0\n"
            "    fix: export NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1\n");
}

TEST(FindingsText, ManyThatAreAlikeAreOneEntry) {
  Findings findings;
  const auto add = [&findings](const std::string& id, Severity severity, int number,
                               const std::string& fix) {
    findings.push_back({id, severity, "bench case" + std::to_string(number),
                        "PE " + std::to_string(number) + " waited", fix});
  };
  for (int number = 0; number < 2; ++number)
    add("noise", Severity::warning, number, "measure alone");
  EXPECT_EQ(findings_text(findings, {}), "[!] noise  PE 0 waited\n    fix: measure alone\n"
                                         "[!] noise  PE 1 waited\n    fix: measure alone\n");
  add("other", Severity::info, 9, "nothing");
  for (int number = 2; number < 12; ++number)
    add("noise", Severity::warning, number, "measure alone");
  EXPECT_EQ(
      findings_text(findings, {}),
      "[!] noise \u00d712  PE 0 waited\n"
      "    and 11 more: bench case1, bench case2, bench case3, bench case4, bench case5, bench "
      "case6, bench case7, bench case8 and 3 others; --verbose shows them\n"
      "    fix: measure alone\n"
      "[i] other  PE 9 waited\n"
      "    fix: nothing\n");
  const std::string whole = findings_text(findings, verbose_style());
  for (int number = 0; number < 12; ++number)
    EXPECT_NE(whole.find("PE " + std::to_string(number) + " waited"), std::string::npos) << whole;
  TextStyle ascii;
  ascii.utf8 = false;
  EXPECT_EQ(findings_text(findings, ascii).find("[!] noise x12  "), 0U);
  // Another fix is another matter, and of errors three messages are shown.
  findings.clear();
  for (int number = 0; number < 4; ++number)
    add("lost", Severity::error, number, "start it again");
  add("lost", Severity::error, 4, "look at its log");
  for (Finding& finding : findings)
    finding.subject = "job";
  EXPECT_EQ(findings_text(findings, {}), "[x] lost \u00d74  PE 0 waited\n"
                                         "    PE 1 waited\n"
                                         "    PE 2 waited\n"
                                         "    and 1 more; --verbose shows them\n"
                                         "    fix: start it again\n"
                                         "[x] lost  PE 4 waited\n"
                                         "    fix: look at its log\n");
}

TEST(SummaryText, CountsWithRightPlurals) {
  Report report = sample_report();
  EXPECT_EQ(summary_text(report), "2 GPUs, 2 NICs. 2 checks (1 passed, 1 failed). 2 results (1 "
                                  "passed, 1 skipped). 2 findings (1 error, 1 warning).\n");
  report = Report{};
  report.status = ReportStatus::complete;
  EXPECT_EQ(summary_text(report), "No findings.\n");
  report.findings = {{"a", Severity::info, "", "m", "f"}};
  report.status = ReportStatus::incomplete;
  EXPECT_EQ(summary_text(report), "Incomplete: the run ended early. 1 finding (1 info).\n");
}

TEST(CountersText, AnInterfaceHasNoPort) {
  Report report;
  report.hotspots = sample_hotspots();
  report.nic_counters = {{"node7", "mlx5_0", "port_xmit_data_bytes", 1, 10, 30, 20},
                         {"node7", "eth0", "netdev_tx_bytes", 1, 10, 30, 20}};
  const std::string text = counters_text(report, {});
  EXPECT_NE(text.find("node7  mlx5_0:1  port_xmit_data_bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("node7  eth0      netdev_tx_bytes"), std::string::npos) << text;
}

TEST(WriteText, HasEverySectionOnce) {
  const std::string text = text_of(sample_report(), verbose_style());
  for (const char* part :
       {"\tGPU0\tGPU1", "NICs by policy", "Best for nvshmem", "memlock", "size  min",
        "port_xmit_data_bytes", "[x] nic-hotspot", "2 GPUs, 2 NICs."}) {
    const std::size_t first = text.find(part);
    ASSERT_NE(first, std::string::npos) << part;
    EXPECT_EQ(text.find(part, first + 1), std::string::npos) << part;
  }
}

TEST(WriteText, HostileBytesCannotBreakATerminal) {
  const std::string hostile = "\x1b[2J\x07\xc2\x9b"
                              "31m\xe2\x80\xae\xff\n\r\t\x7f";
  Report report = sample_report();
  report.topology["nics"][0]["name"] = hostile;
  report.topology["distances"]["labels"][2] = hostile;
  report.topology["gpus"][0]["cpu_affinity"] = hostile;
  report.topology["distances"]["matrix"][0][1] = hostile;
  report.topology["distances"]["unknown"][0]["reason"] = hostile;
  report.topology["other_nics"][0]["name"] = hostile;
  report.mapping["pes"][0]["chosen_by"] = hostile;
  report.mapping["pes"][0]["nics"][0]["device"] = hostile;
  report.mapping["advice"][0]["lines"][0] = hostile;
  report.mapping["version"] = hostile;
  report.checks[1] = {hostile, hostile, "fail", hostile, hostile, hostile, hostile};
  report.results[0].case_name = hostile;
  report.results[0].params[hostile] = hostile;
  report.results[0].unit = hostile;
  report.results[1].reason = hostile;
  report.nic_counters[0].device = hostile;
  report.findings[0] = {hostile, Severity::error, hostile, hostile, hostile};
  TextStyle style;
  style.verbose = true;
  const std::string text = text_of(report, style);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    ASSERT_TRUE(byte >= 0x20 || byte == '\n' || byte == '\t') << "at " << i;
    ASSERT_NE(byte, 0x7f);
  }
  EXPECT_FALSE(first_non_utf8(text));
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
}

TEST(Table, AlignsByDisplayWidth) {
  Table table({{"a"}, {"n", Align::right}});
  table.add({"caf\xc3\xa9", "1"});
  table.add({"\xe6\xbc\xa2", "10"});
  table.add({"e\xcc\x81"});
  EXPECT_EQ(table.text({}), "a      n\n"
                            "caf\xc3\xa9   1\n"
                            "\xe6\xbc\xa2    10\n"
                            "e\xcc\x81\n");
  EXPECT_EQ(display_width("\xe2\x9c\x93"), 1);
}

TEST(Table, WrapsAtBlanksOnly) {
  EXPECT_EQ(wrapped("one two three four", 0, 2), "one two three four");
  EXPECT_EQ(wrapped("one two three four", 14, 2), "one two three\n  four");
  EXPECT_EQ(wrapped("aaaaaaaaaaaaaaaaaaaaaaaaa b", 14, 2), "aaaaaaaaaaaaaaaaaaaaaaaaa\n  b");
}

TEST(JsonView, NumbersAreShort) {
  EXPECT_EQ(view::decimal(400), "400");
  EXPECT_EQ(view::decimal(12.345678), "12.35");
  EXPECT_EQ(view::decimal(123456.7), "123457");
  EXPECT_EQ(view::decimal(0.00012), "0.00012");
}

nlohmann::json simulated(double over_even, const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json variant = {{"name", "given"},
                            {"busiest",
                             {{"node", 0},
                              {"device", "mlx5_0"},
                              {"port", 1},
                              {"out_bytes", 2e6},
                              {"over_even", over_even}}},
                            {"operations", {{{"time_us", {{"mean", 10}}}}}}};
  variant.update(more);
  return {{"nic_ports", 32}, {"variants", nlohmann::json::array({variant})}};
}

std::string first_line(const nlohmann::json& simulation) {
  const std::string text = simulation_text(simulation, {});
  return text.substr(0, text.find('\n'));
}

TEST(SimulationText, ItsPartsAreOneBlankLineApart) {
  for (const nlohmann::json& more :
       {nlohmann::json::object(), nlohmann::json{{"slowest_group_us", {{"mean", 12}}}}}) {
    const std::string text = simulation_text(simulated(2, more), {});
    EXPECT_NE(text.find("\n\ngiven\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("\n\n\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("12 us a step") != std::string::npos, !more.empty()) << text;
  }
}

TEST(SimulationText, NamesABusiestNicOnlyIfThereIsOne) {
  EXPECT_EQ(first_line(simulated(2)),
            "busiest NIC: node 0 mlx5_0/1, 2 MB a step, 2 times the even share; 10 us a step");
  EXPECT_EQ(first_line(simulated(1.0001)), "all NICs carry the same: 2 MB a step; 10 us a step");
  // What sampling explains is no difference.
  EXPECT_EQ(first_line(simulated(1.04, {{"even", true}})),
            "all NICs carry the same: 2 MB a step; 10 us a step");
  EXPECT_EQ(first_line(simulated(2, {{"busiest_alike", 16}})),
            "busiest: 16 of 32 NICs, such as node 0 mlx5_0/1: 2 MB a step each, 2 times the even "
            "share; 10 us a step");
}

nlohmann::json step_of_us(const char* name, double mean, double margin) {
  return {{"name", name},
          {"operations",
           {{{"operation", "step"}, {"time_us", {{"mean", mean}, {"margin95", margin}}}}}}};
}

TEST(SimulationText, WhatChanceExplainsIsNoDifference) {
  const auto text_of = [](double optimal, double changed) {
    return simulation_text({{"changes", nlohmann::json::array({"--kill-nic 1/mlx5_0"})},
                            {"price_of_mapping", 100 / optimal},
                            {"what_if_factor", changed / 100},
                            {"variants",
                             {step_of_us("given", 100, 3), step_of_us("optimal", optimal, 4),
                              step_of_us("what-if", changed, 4)}}},
                           {});
  };
  const std::string same = text_of(100.4, 104.9);
  EXPECT_NE(same.find("the best mapping is not faster\n"), std::string::npos) << same;
  EXPECT_NE(same.find("(--kill-nic 1/mlx5_0) a step takes as long as without\n"), std::string::npos)
      << same;
  const std::string other = text_of(50, 200);
  EXPECT_NE(other.find("cost of the mapping: a step takes 2 times as long as with the best one\n"),
            std::string::npos)
      << other;
  EXPECT_NE(other.find("a step takes 2 times as long\n"), std::string::npos) << other;
}

TEST(SimulationText, RowsOfABestMappingThatChangesNothingAreNotRepeated) {
  const auto text_of = [](double optimal_us, bool verbose) {
    TextStyle style;
    style.verbose = verbose;
    return simulation_text(
        {{"price_of_mapping", 100 / optimal_us},
         {"variants", {step_of_us("given", 100, 3), step_of_us("optimal", optimal_us, 3)}}},
        style);
  };
  const std::string same = text_of(100, false);
  EXPECT_NE(same.find("the best mapping is not faster\n"), std::string::npos) << same;
  EXPECT_EQ(same.find("\noptimal "), std::string::npos) << same;
  EXPECT_NE(text_of(100, true).find("\noptimal "), std::string::npos) << text_of(100, true);
  EXPECT_NE(text_of(50, false).find("\noptimal "), std::string::npos) << text_of(50, false);
}

TEST(SimulationText, SaysWhoTookOverForAKilledNic) {
  nlohmann::json simulation = simulated(1);
  simulation["params"] = {{"nodes", 4}};
  simulation["taken_over"] = nlohmann::json::parse(
      R"([{"first_node": 1, "nodes": 1, "device": "mlx5_0", "port": 1, "pes": [0, 2, 4],
           "by": [{"device": "mlx5_1", "port": 1, "pes": [0], "shared_with_pes": [1]},
                  {"device": "mlx5_9", "port": 2, "pes": [2, 4], "shared_with_pes": []}]},
          {"first_node": 0, "nodes": 4, "device": "mlx5_5", "port": 1, "pes": [], "by": []},
          {"first_node": 0, "nodes": 3, "device": "mlx5_6", "port": 1, "pes": [6],
           "by": [{"device": "mlx5_7", "port": 1, "pes": [6], "shared_with_pes": [3, 7]}]}])");
  const std::string text = simulation_text(simulation, {});
  for (const char* line :
       {"node 1 mlx5_0/1 is killed: PE 0 uses mlx5_1/1, as PE 1 does; PEs 2 and 4 use mlx5_9/2\n",
        "every node's mlx5_5/1 is killed: no PE used it\n",
        "node 0 and 2 more: mlx5_6/1 is killed: PE 6 uses mlx5_7/1, as PEs 3 and 7 do\n"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
}

TEST(SimulationText, WhatIsAlikeIsOneLine) {
  nlohmann::json nics = nlohmann::json::array(), rails = nlohmann::json::array();
  for (int i = 0; i < 4; ++i) {
    nics.push_back({{"node", 0},
                    {"device", "mlx5_" + std::to_string(i)},
                    {"port", 1},
                    {"out_bytes", 2e6},
                    {"in_bytes", 2e6},
                    {"over_even", 1}});
    rails.push_back({{"device", "mlx5_" + std::to_string(i)},
                     {"port", 1},
                     {"out_bytes", i == 3 ? 0 : 8e6},
                     {"in_bytes", 8e6}});
  }
  const std::string text = simulation_text(
      simulated(1,
                {{"nics", nics},
                 {"busiest_alike", 20},
                 {"nics_left_out", 28},
                 {"rails", rails},
                 {"switches", {{{"name", "leaf switch 0"}, {"up_bytes", 0}, {"down_bytes", 0}}}}}),
      {});
  EXPECT_NE(text.find("node 0 mlx5_0/1 and 19 alike  2 MB  2 MB"), std::string::npos) << text;
  EXPECT_NE(text.find("... and 12 NICs with less traffic"), std::string::npos) << text;
  EXPECT_NE(text.find("rail mlx5_0/1 and 2 alike"), std::string::npos) << text;
  EXPECT_NE(text.find("rail mlx5_3/1"), std::string::npos) << text;
  EXPECT_EQ(text.find("leaf switch"), std::string::npos) << "nothing goes over it: " << text;
  // A user who asks for all NICs gets all.
  for (int i = 4; i < 9; ++i)
    nics.push_back(nics.front());
  const std::string all = simulation_text(
      simulated(1, {{"nics", nics}, {"busiest_alike", 9}, {"nics_left_out", 0}}), {});
  EXPECT_EQ(all.find("alike"), std::string::npos) << all;
  EXPECT_EQ(all.find("traffic ("), std::string::npos) << all;
}

TEST(HotspotsText, APortWithAnErrorIsMarked) {
  const auto text = hotspots_text(
      nlohmann::json::parse(
          R"({"ports": [{"host": "n", "device": "mlx5_0", "port": 1, "hot": true, "sent": {"GBps": 4}},
                        {"host": "n", "device": "mlx5_1", "port": 1, "sent": {"GBps": 2}},
                        {"host": "n", "device": "mlx5_2", "port": 1, "hot": true, "sent": {"GBps": 1}}],
              "signs": [{"host": "n", "device": "mlx5_1", "port": 1, "severity": "error"},
                        {"host": "n", "device": "mlx5_2", "port": 1, "severity": "error"},
                        {"host": "n", "device": "mlx5_0", "port": 1, "severity": "warning"}]})"),
      {});
  std::vector<std::string> marks;
  for (const std::string& line : split(text, '\n'))
    if (line.find("mlx5_") != std::string::npos)
      marks.push_back(line.substr(line.rfind("  ") + 2));
  EXPECT_EQ(marks, (std::vector<std::string>{"HOT", "ERROR", "HOT, ERROR"})) << text;
}

} // namespace
} // namespace shmemctl
