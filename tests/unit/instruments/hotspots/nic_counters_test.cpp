// Counters as changes, as what a port has moved, and as what the machines of a job did.
#include "src/instruments/hotspots/counters.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/text.h"
#include "reports/validate.h"
#include "src/base/error.h"
#include "src/instruments/hotspots/job_watch.h"

using namespace shmemctl;

namespace {

std::optional<std::int64_t> delta(const std::string& counter, std::uint64_t before,
                                  std::uint64_t after) {
  return counter_step(counter, before, after).delta;
}

TEST(NicCounters, RoundsResetsAndStuckOnes) {
  EXPECT_EQ(delta("link_downed", 3, 5), 2);
  EXPECT_EQ(delta("link_downed", 5, 5), 0);
  EXPECT_EQ(delta("sent_pkts", 0xfffffff0u, 0x10), 0x20);
  EXPECT_EQ(delta("port_xmit_data_bytes", 4ull * 0xfffffff0u, 0x40), 0x80);
  EXPECT_EQ(delta("sent_pkts", 5000, 10), std::nullopt);
  EXPECT_EQ(delta("sent_pkts", 0x1'0000'0005ull, 10), std::nullopt);
  EXPECT_EQ(delta("port_xmit_data_bytes", 4ull * 0xffffffffu, 4ull * 0xffffffffu), std::nullopt);
  EXPECT_EQ(delta("sent_pkts", 0x1'0000'0005ull, 0x1'0000'0006ull), 1);
}

CounterTotal total(const std::string& counter, std::int64_t delta) {
  CounterTotal total;
  total.counter = counter;
  total.before = 0;
  total.after = static_cast<std::uint64_t>(delta);
  total.delta = delta;
  total.readings = 2;
  return total;
}

PortTotals counted_port(const std::string& device, std::vector<CounterTotal> counters,
                        bool software = false) {
  PortTotals totals;
  totals.port.device = device;
  totals.port.rdma = true;
  totals.port.software = software;
  totals.counters = std::move(counters);
  return totals;
}

TEST(NicCounters, TheBestCounterIsUsed) {
  const PortTotals soft =
      counted_port("rxe0", {total("netdev_tx_bytes", 10), total("sent_pkts", 2)}, true);
  EXPECT_EQ(moved_bytes(soft, WireDirection::sent)->at_most, 8192u);
  EXPECT_FALSE(moved_bytes(soft, WireDirection::received));
  const PortTotals hca =
      counted_port("mlx5_0", {total("port_xmit_data_bytes", 400), total("sent_pkts", 2)});
  EXPECT_EQ(moved_bytes(hca, WireDirection::sent)->at_most, 400u);
  EXPECT_EQ(moved_bytes(hca, WireDirection::sent)->by, "port_xmit_data_bytes");
  // RDMA bypasses the interface's counters: they say nothing.
  EXPECT_FALSE(
      moved_bytes(counted_port("mlx5_0", {total("netdev_tx_bytes", 10)}), WireDirection::sent));
}

HostTotals counted_host(const std::string& name, std::int64_t sent, std::int64_t received) {
  return {name,
          NodeTotals(std::vector<PortTotals>{
              counted_port("mlx5_0", {total("port_xmit_data_bytes", sent),
                                      total("port_rcv_data_bytes", received)})}),
          0};
}

NicTraffic claim(std::uint64_t put_bytes, std::uint64_t get_bytes) {
  NicTraffic traffic{{"mlx5_0", 1}};
  traffic.put_bytes = put_bytes;
  traffic.get_bytes = get_bytes;
  traffic.operations = 1;
  return traffic;
}

TEST(NicWatch, TrafficThatWentElsewhereIsFound) {
  const std::vector<HostTotals> hosts = {counted_host("a", 1000, 50), counted_host("b", 10, 0)};
  // Two PEs of one host share the port.
  EXPECT_TRUE(judge_claims(hosts, {{"a", claim(600, 20)}, {"a", claim(400, 30)}}).empty());
  const Findings findings =
      judge_claims(hosts, {{"a", claim(600, 20)}, {"a", claim(401, 31)}, {"b", claim(10, 0)}});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].id, "traffic-elsewhere");
  EXPECT_EQ(findings[0].subject, "a mlx5_0:1");
  EXPECT_NE(findings[0].message.find("sent 1001 bytes"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[1].message.find("received 51 bytes"), std::string::npos);
  // A port without counters has no result.
  EXPECT_TRUE(judge_claims({}, {{"a", claim(600, 20)}}).empty());
}

TEST(NicWatch, TextsComeBack) {
  WatchPart part;
  part.claims = {{{"mlx5_0", 1}, 5, 6, 7, 8, 9}};
  part.mapped = {{"mlx5_1", 2}};
  WatchPart back = read_watch_text(watch_text(part, 4096), "a");
  EXPECT_FALSE(back.leads);
  ASSERT_EQ(back.claims.size(), 1u);
  EXPECT_EQ(back.claims[0].get_bytes, 6u);
  EXPECT_EQ(back.claims[0].long_bytes, 8u);
  EXPECT_EQ(back.claims[0].long_ns, 9u);
  EXPECT_EQ(back.mapped.at(0).device, "mlx5_1");
  part.leads = true;
  part.totals = counted_host("a", 40, 4).totals;
  back = read_watch_text(watch_text(part, 4096), "a");
  EXPECT_TRUE(back.leads);
  EXPECT_EQ(back.totals.ports().at(0).counters.at(0).delta, 40);
  for (const std::string text :
       {"", "[]", "{\"claims\":[]}", "{\"claims\":[[\"d\",1,0,0,0]],\"mapped\":[]}",
        "{\"claims\":[[\"d\",1,-1,0,0,0,0]],\"mapped\":[]}",
        "{\"claims\":[],\"mapped\":[],\"totals\":{\"names\":[],\"ports\":3,\"left_out\":0}}"})
    EXPECT_THROW(read_watch_text(text, "a"), Error) << text;
}

/// Two hosts of two PEs, each with two HCAs that carry these bytes per second.
std::vector<WatchPart> parts_of(const std::vector<std::int64_t>& sent_bytes) {
  std::vector<WatchPart> parts(4);
  for (std::size_t pe = 0; pe < parts.size(); ++pe) {
    parts[pe].claims = {claim(0, 0)};
    parts[pe].claims[0].nic.device = pe % 2 == 0 ? "mlx5_0" : "mlx5_1";
    parts[pe].claims[0].put_bytes = static_cast<std::uint64_t>(sent_bytes[pe]);
    if (pe % 2 == 1)
      continue;
    std::vector<PortTotals> ports;
    for (std::size_t nic = 0; nic < 2; ++nic) {
      PortTotals& one = ports.emplace_back(counted_port(
          "mlx5_" + std::to_string(nic),
          {total("port_xmit_data_bytes", sent_bytes[pe + nic]), total("port_rcv_data_bytes", 0)}));
      one.port.fabric = true;
      one.port.rail = static_cast<int>(nic);
      one.port.link_Gbps = known(400.0, "test");
      for (CounterTotal& counter : one.counters)
        counter.window_s = 1;
    }
    parts[pe].leads = true;
    parts[pe].totals = NodeTotals(std::move(ports));
  }
  return parts;
}

TEST(NicWatch, OneFindingNamesHostNicPortAndPes) {
  const std::vector<JobHost> hosts = {{"a", 0, {0, 1}}, {"b", 2, {2, 3}}};
  const NicThresholds thresholds = parse_nic_thresholds(nic_thresholds_text(), "built in");
  constexpr std::int64_t GB = 1'000'000'000;
  const std::vector<WatchPart> parts = parts_of({2 * GB, 2 * GB, 2 * GB, 9 * GB});
  const WatchVerdict verdict = judge_watch(parts, hosts, thresholds, true, true);
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].id, "nic-hotspot-measured");
  EXPECT_EQ(verdict.findings[0].subject, "b mlx5_1:1");
  EXPECT_EQ(verdict.findings[0].message,
            "mlx5_1:1 of b sent 9 GB/s (18% of its link), and the median of the 2 fabric ports of "
            "b is 5.5 GB/s; sent 9 GB/s (18% of its link), and the median of rail 1 of 2 hosts is "
            "5.5 GB/s; put and got through it: PE 3 (9 GB)");
  EXPECT_EQ(verdict.hotspots.loads.at(3).pes, std::vector<int>{3});
  Report report;
  report.started_at = report.finished_at = "2026-11-23T00:00:00Z";
  put_job_watch(report, verdict, thresholds);
  EXPECT_EQ(report.nic_counters.size(), 8u);
  for (const SchemaViolation& violation : validate_report(to_json(report)))
    ADD_FAILURE() << violation.pointer << ": " << violation.message;
  EXPECT_EQ(report.hotspots["mode"], "job");
  EXPECT_EQ(report.hotspots["ports"][3]["moved_by"][0]["put_bytes"], 9 * GB);
  const std::string text = job_nics_text(report.hotspots, {});
  EXPECT_NE(text.find("9 GB/s 18%"), std::string::npos) << text;
  EXPECT_NE(text.find("HOT"), std::string::npos) << text;
  // PEs that need not send equal amounts, or send nothing, have no hot NIC.
  EXPECT_TRUE(judge_watch(parts, hosts, thresholds, false, true).findings.empty());
  EXPECT_TRUE(judge_watch(parts, hosts, thresholds, true, false).findings.empty());
}

TEST(NicWatch, AHostWithoutNicsIsSaid) {
  std::vector<WatchPart> parts = parts_of({5, 5, 5, 5});
  parts[2].totals = NodeTotals(std::vector<PortTotals>());
  const NicThresholds thresholds = parse_nic_thresholds(nic_thresholds_text(), "built in");
  const Findings findings =
      judge_watch(parts, {{"a", 0, {0, 1}}, {"b", 2, {2, 3}}}, thresholds, true, true).findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "counters-unavailable");
  EXPECT_EQ(findings[0].subject, "b");
  EXPECT_EQ(findings[0].severity, Severity::info);
}

} // namespace
