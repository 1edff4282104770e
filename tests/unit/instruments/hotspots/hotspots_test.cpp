// From two trees to findings and the report's section.
#include "src/instruments/hotspots/hotspots.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/report.h"
#include "reports/text.h"
#include "reports/validate.h"
#include "src/instruments/hotspots/watch.h"
#include "tests/unit/instruments/hotspots/counter_tree.h"

using namespace shmemctl;

namespace {

constexpr std::uint64_t GB = 1'000'000'000;

class TwoTrees : public testing::Test {
protected:
  Hotspots hotspots(int ports = 4) {
    totals_.emplace(compare_trees(before_.sysroot(), hca_node(ports), after_.sysroot(),
                                  hca_node(ports), std::nullopt));
    Hotspots hotspots = read_hotspots(*totals_, "node7", thresholds_);
    judge_groups(hotspots, thresholds_.outliers);
    return hotspots;
  }
  std::vector<std::string> ids(const Hotspots& hotspots) {
    std::vector<std::string> list;
    for (const Finding& finding : hotspot_findings(hotspots, thresholds_)) {
      EXPECT_FALSE(finding.fix.empty());
      list.push_back(finding.id + " " + finding.subject);
    }
    return list;
  }
  void traffic(const std::vector<std::uint64_t>& sent_bytes) {
    for (std::size_t i = 0; i < sent_bytes.size(); ++i) {
      before_.traffic("mlx5_" + std::to_string(i), 0, 0);
      after_.traffic("mlx5_" + std::to_string(i), sent_bytes[i], 0);
    }
  }
  const CounterTree before_{"100"}, after_{"110"};
  const NicThresholds thresholds_ = parse_nic_thresholds(nic_thresholds_text(), "built in");
  std::optional<NodeTotals> totals_;
};

using Ids = std::vector<std::string>;

TEST_F(TwoTrees, OnePortReceivesWhatAllSend) {
  const auto receive = [this](const std::vector<std::uint64_t>& sent_bytes) {
    for (std::size_t i = 0; i < sent_bytes.size(); ++i) {
      const std::string device = "mlx5_" + std::to_string(i);
      before_.traffic(device, 0, 0);
      after_.traffic(device, sent_bytes[i], i == 2 ? 400 * GB : GB / 1000);
    }
  };
  receive({100 * GB, 101 * GB, 99 * GB, 100 * GB});
  const Hotspots narrow = hotspots();
  EXPECT_EQ(ids(narrow), Ids{"receive-side-narrow node7 mlx5_2:1"});
  const std::string message = hotspot_findings(narrow, thresholds_).at(0).message;
  EXPECT_NE(message.find("received 40 GB/s"), std::string::npos) << message;
  EXPECT_NE(message.find("none of them sent more than 25%"), std::string::npos) << message;
  receive({GB / 1000, GB / 1000, 400 * GB, GB / 1000});
  EXPECT_EQ(ids(hotspots()), Ids{"nic-hotspot-measured node7 mlx5_2:1"}) << "it sends all, too";
}

TEST_F(TwoTrees, AHotNicIsNamedWithItsPes) {
  traffic({10 * GB, 400 * GB, 10 * GB, 11 * GB});
  Hotspots found = hotspots();
  Mapping mapping;
  mapping.pes.resize(4);
  mapping.nics = {{0, 1, {3}, 1, 1}, {1, 1, {0, 1, 2}, 3, 3}};
  attribute(found, "node7", hca_node(4), mapping);
  EXPECT_EQ(ids(found), Ids{"nic-hotspot-measured node7 mlx5_1:1"});
  const Finding finding = hotspot_findings(found, thresholds_).at(0);
  EXPECT_EQ(finding.message, "mlx5_1:1 of node7 sent 40 GB/s (80% of its link), and the median of "
                             "the 4 fabric ports of node7 is 1.05 GB/s; mapped to it: PEs 0, 1, 2");
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(found.loads[2].pes, std::vector<int>());
  EXPECT_EQ(found.loads[2].pes_reason, "");
}

TEST_F(TwoTrees, WithoutPesNoPeIsNamed) {
  traffic({10 * GB, 400 * GB, 10 * GB, 11 * GB});
  Hotspots found = hotspots();
  attribute(found, "node7", hca_node(4), Mapping());
  EXPECT_EQ(found.loads[1].pes_reason, "the node has no GPU, so no PE is known");
  EXPECT_EQ(hotspot_findings(found, thresholds_).at(0).message.find("PE"), std::string::npos);
}

TEST_F(TwoTrees, EvenTrafficHasNoFindings) {
  traffic({100 * GB, 101 * GB, 99 * GB, 100 * GB});
  EXPECT_EQ(ids(hotspots()), Ids{});
}

TEST_F(TwoTrees, SignsOfCongestionLossAndTheLink) {
  traffic({GB, GB, GB, GB});
  const auto change = [&](const std::string& device, const std::string& file, const char* to) {
    before_.set(device, file, "0");
    after_.set(device, file, to);
  };
  change("mlx5_0", "hw_counters/np_cnp_sent", "90000");
  change("mlx5_0", "hw_counters/np_ecn_marked_roce_packets", "90000");
  change("mlx5_1", "hw_counters/out_of_sequence", "4000");
  change("mlx5_2", "counters/link_downed", "2");
  change("mlx5_3", "hw_counters/np_cnp_sent", "12"); // far below
  const Hotspots found = hotspots();
  EXPECT_EQ(ids(found), (Ids{"nic-congested node7 mlx5_0:1", "nic-lossy node7 mlx5_1:1",
                             "link-flapping node7 mlx5_2:1"}));
  const Findings findings = hotspot_findings(found, thresholds_);
  EXPECT_EQ(findings[2].severity, Severity::error);
  EXPECT_EQ(findings[1].message,
            "mlx5_1:1 of node7: out_of_sequence +4000 (400/s), limit >10/s by linux-mlx5: packets "
            "arrived out of order, or were lost in between");
}

TEST_F(TwoTrees, UnknownLoadsAreReportedAndNotCompared) {
  traffic({10 * GB, 10 * GB, 10 * GB, 400 * GB});
  before_.set("mlx5_3", "counters/port_xmit_data", "N/A (no PMA)");
  before_.set("mlx5_3", "counters/port_xmit_packets", "N/A (no PMA)");
  const Hotspots found = hotspots();
  EXPECT_EQ(ids(found), Ids{"counters-unavailable node7 mlx5_3:1"});
  const Finding finding = hotspot_findings(found, thresholds_).at(0);
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(finding.message, "mlx5_3:1 of node7: its load is not fully known. sent: "
                             "port_xmit_data_bytes reads \"N/A (no PMA)\"; port_xmit_packets reads "
                             "\"N/A (no PMA)\"");
}

TEST_F(TwoTrees, PacketsAreUsedIfBytesAreMissing) {
  traffic({10 * GB, 10 * GB, 10 * GB, 400 * GB});
  before_.set("mlx5_3", "counters/port_xmit_data", "N/A (no PMA)");
  EXPECT_EQ(ids(hotspots()),
            (Ids{"nic-hotspot-measured node7 mlx5_3:1", "counters-unavailable node7 mlx5_3:1"}));
}

TEST_F(TwoTrees, APortWithoutCountersAtAll) {
  traffic({GB, GB});
  const Hotspots found = hotspots(3);
  EXPECT_EQ(ids(found), Ids{"counters-unavailable node7 mlx5_2:1"});
  EXPECT_EQ(found.loads[2].sent.reason,
            "missing: /sys/class/infiniband/mlx5_2/ports/1/counters and hw_counters");
}

TEST_F(TwoTrees, TheFixNamesAFolderThatThePortHas) {
  Hotspots found;
  for (const bool rdma : {true, false}) {
    PortLoad load;
    load.host = "node7";
    load.device = rdma ? "mlx5_0" : "eth0";
    load.netdev = rdma ? "ib0" : "eth0";
    load.rdma = rdma;
    found.loads.push_back(load);
  }
  const Findings findings = hotspot_findings(found, thresholds_);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].fix.find("check the files under /sys/class/infiniband/mlx5_0;"), 0u);
  EXPECT_EQ(findings[1].fix.find("check the files under /sys/class/net/eth0;"), 0u);
}

TEST_F(TwoTrees, TheReportsSectionFollowsTheSchemaAndReadsBack) {
  traffic({10 * GB, 400 * GB, 10 * GB, 11 * GB});
  before_.set("mlx5_0", "counters/link_downed", "0");
  after_.set("mlx5_0", "counters/link_downed", "2");
  after_.set("mlx5_2", "counters/port_rcv_data", "junk");
  Report report;
  report.started_at = report.finished_at = "2026-11-23T00:00:00Z";
  WatchFacts facts;
  facts.mode = "command";
  facts.samples = 2;
  facts.interval_s = 0.1;
  facts.core_share = 0.001;
  facts.argv = {"sleep", "1"};
  facts.command = CommandEnd{std::nullopt, "SIGKILL", false, 1.5};
  const Hotspots found = hotspots();
  report.nic_counters = counter_rows(*totals_, "node7");
  put_hotspots(report, found, thresholds_, facts);
  const nlohmann::json document = to_json(report);
  for (const SchemaViolation& violation : validate_report(document))
    ADD_FAILURE() << violation.pointer << ": " << violation.message;
  EXPECT_EQ(to_json(report_from_json(document, "test")), document);
  const nlohmann::json& section = document["hotspots"];
  EXPECT_EQ(section["window_s"], 10.0);
  EXPECT_EQ(section["ports"][1]["hot"], true);
  EXPECT_EQ(section["ports"][2]["received"]["GBps"], nullptr);
  EXPECT_EQ(section["command"]["exit_code"], nullptr);
  EXPECT_EQ(section["command"]["signal"], "SIGKILL");
  EXPECT_EQ(section["signs"][0]["counter"], "link_downed");
  const std::string text = hotspots_text(section, {});
  EXPECT_NE(text.find("40 GB/s 80%"), std::string::npos) << text;
  EXPECT_NE(text.find("HOT"), std::string::npos) << text;
  EXPECT_NE(text.find("a signal ended it: SIGKILL"), std::string::npos) << text;
}

TEST_F(TwoTrees, LinesOfTheLog) {
  traffic({10 * GB, 400 * GB, 10 * GB, 11 * GB});
  before_.set("mlx5_0", "counters/link_downed", "0");
  after_.set("mlx5_0", "counters/link_downed", "2");
  const std::string text = log_lines(hotspots(), "T");
  EXPECT_NE(text.find("T node7 mlx5_0:1 sent 1 GB/s 2% received 0 GB/s 0% sent link-flapping "
                      "link_downed+2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("T node7 mlx5_1:1 sent 40 GB/s 80% received 0 GB/s 0% sent HOT\n"),
            std::string::npos)
      << text;
}

} // namespace
