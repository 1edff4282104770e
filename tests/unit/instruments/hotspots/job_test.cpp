// What the hosts of a job counted, as text and merged.
#include "src/instruments/hotspots/hotspots.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/instruments/hotspots/gather_hosts.h"
#include "src/instruments/hotspots/totals.h"
#include "tests/unit/instruments/hotspots/counter_tree.h"

using namespace shmemctl;

namespace {

constexpr std::uint64_t GB = 1'000'000'000;

/// Ten seconds of a machine whose HCAs sent these bytes.
class Machine {
public:
  explicit Machine(const std::vector<std::uint64_t>& sent_bytes) {
    for (std::size_t i = 0; i < sent_bytes.size(); ++i) {
      const std::string device = "mlx5_" + std::to_string(i);
      before.traffic(device, 0, 0);
      after.traffic(device, sent_bytes[i], 0);
      for (const char* still : {"link_downed", "symbol_error"}) {
        before.set(device, std::string("counters/") + still, "3");
        after.set(device, std::string("counters/") + still, "3");
      }
    }
    ports = static_cast<int>(sent_bytes.size());
  }
  NodeTotals totals() const {
    return compare_trees(before.sysroot(), hca_node(ports), after.sysroot(), hca_node(ports),
                         std::nullopt);
  }
  CounterTree before{"100"}, after{"110"};
  int ports = 0;
};

NodeTotals there_and_back(const NodeTotals& totals, CounterDetail detail, std::size_t& left_out) {
  return totals_from_json(nlohmann::json::parse(totals_json(totals, detail).dump()), left_out);
}

std::string shown(const CounterTotal& total) {
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : "-"; };
  return total.counter + " " + number(total.before) + " " + number(total.after) + " " +
         number(total.delta) + " " + std::to_string(total.window_s) + " " +
         number(total.peak_per_s) + " " + total.problem;
}

TEST(JobHosts, PesOfOneMachineShareItsLeader) {
  const std::vector<JobHost> hosts = job_hosts({{7, "a"}, {9, "b"}, {7, "a"}, {8, "b"}});
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].pes, (std::vector<int>{0, 2}));
  EXPECT_EQ(hosts[0].name, "a");
  EXPECT_EQ(hosts[1].name, "b (PE 1)"); // two machines of one name
  EXPECT_EQ(hosts[2].name, "b (PE 3)");
  EXPECT_EQ(hosts[2].leader, 3);
  EXPECT_EQ(host_of_pes(hosts, 4), (std::vector<std::size_t>{0, 1, 0, 2}));
  EXPECT_EQ(machines_from({machine_text({7, "a b"})}).at(0).name, "a b");
}

TEST(TotalsAsText, ComeBackWhole) {
  const Machine machine({10 * GB, 20 * GB});
  machine.before.set("mlx5_0", "counters/port_rcv_data", "N/A (no PMA)");
  machine.after.set("mlx5_1", "hw_counters/new", "4");
  const NodeTotals totals = machine.totals();
  std::size_t left_out = 1;
  const NodeTotals back = there_and_back(totals, CounterDetail::all, left_out);
  EXPECT_EQ(left_out, 0u);
  ASSERT_EQ(back.ports().size(), 2u);
  for (std::size_t port = 0; port < 2; ++port) {
    const PortTotals &was = totals.ports()[port], &is = back.ports()[port];
    EXPECT_EQ(is.port.device, was.port.device);
    EXPECT_EQ(is.port.rail, was.port.rail);
    EXPECT_EQ(is.port.link_Gbps.value, was.port.link_Gbps.value);
    ASSERT_EQ(is.counters.size(), was.counters.size());
    for (std::size_t i = 0; i < is.counters.size(); ++i)
      EXPECT_EQ(shown(is.counters[i]), shown(was.counters[i]));
  }
}

TEST(TotalsAsText, WhatHasNoRoomIsLeftOutAndSaid) {
  const NodeTotals totals = Machine({10 * GB, 20 * GB}).totals();
  EXPECT_EQ(detail_within(totals, 1 << 20), CounterDetail::all);
  const std::size_t all = totals_json(totals, CounterDetail::all).dump().size();
  EXPECT_EQ(detail_within(totals, all - 1), CounterDetail::changed);
  EXPECT_EQ(detail_within(totals, 10), CounterDetail::none);
  std::size_t left_out = 0;
  const NodeTotals changed = there_and_back(totals, CounterDetail::changed, left_out);
  EXPECT_EQ(left_out, 4u);
  EXPECT_EQ(total_of(changed, "port_xmit_data_bytes", 1).delta, 20 * GB);
  const NicThresholds thresholds = parse_nic_thresholds(nic_thresholds_text(), "built in");
  const Hotspots hotspots = hotspots_of_job({{"a", changed, left_out}}, {}, thresholds, nullptr);
  ASSERT_FALSE(hotspots.unavailable.empty());
  EXPECT_EQ(hotspots.unavailable.back().counter, "4 counters of this host");
}

TEST(TotalsAsText, NonsenseIsRefused) {
  const nlohmann::json good = totals_json(Machine({GB}).totals(), CounterDetail::all);
  const auto with = [&good](const char* pointer, const nlohmann::json& value) {
    nlohmann::json bad = good;
    bad[nlohmann::json::json_pointer(pointer)] = value;
    return bad;
  };
  std::size_t left_out = 0;
  for (const nlohmann::json& bad :
       {with("/ports", 3), with("/ports/0/port", -1), with("/ports/0/window_s", -1),
        with("/ports/0/counters/0", {99, 1}), with("/ports/0/counters/0", {0, -1}),
        with("/ports/0/counters/0", {0, INT64_MAX, 1}), with("/ports/0/device", 5),
        with("/names", nullptr), with("/left_out", -1)})
    EXPECT_THROW(totals_from_json(bad, left_out), std::exception) << bad.dump();
  GatheredHosts all;
  EXPECT_THROW(read_host_part("{}", "a", all), Error);
}

TEST(HotspotsOfAJob, RailsAreComparedAcrossHosts) {
  // Rail 1 of host c is hot among its rail; within c, both carry alike.
  const Machine a({10 * GB, 10 * GB}), b({10 * GB, 10 * GB}), c({200 * GB, 200 * GB});
  GatheredHosts all;
  for (const auto& [name, machine, first_pe] :
       {std::tuple{"a", &a, 0}, std::tuple{"b", &b, 2}, std::tuple{"c", &c, 4}}) {
    const NodeTotals totals = machine->totals();
    HostPart part{&totals, {}};
    for (int nic = 0; nic < 2; ++nic) {
      PortUser user;
      user.device = "mlx5_" + std::to_string(nic);
      user.moved.pe = first_pe + nic;
      part.users.push_back(user);
    }
    read_host_part(host_part_text(part, 1 << 20), name, all);
  }
  const NicThresholds thresholds = parse_nic_thresholds(nic_thresholds_text(), "built in");
  const Hotspots hotspots = hotspots_of_job(all.hosts, all.users, thresholds, &thresholds.outliers);
  const Findings findings = hotspot_findings(hotspots, thresholds);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].subject, "c mlx5_1:1");
  EXPECT_EQ(findings[1].message, "mlx5_1:1 of c sent 20 GB/s (40% of its link), and the median of "
                                 "rail 1 of 3 hosts is 1 GB/s; mapped to it: PE 5");
}

TEST(HotspotsOfAJob, PausesDoNotHideWhoCarriesTwice) {
  OutlierSettings settings;
  PortLoad load;
  load.host = "a";
  load.fabric = true;
  load.link_Gbps = 400;
  std::vector<PortLoad> loads(4, load);
  for (std::size_t i = 0; i < loads.size(); ++i)
    loads[i].sent.GBps = i == 3 ? 3.1 : 1.4; // 6% of the link, and 3%
  EXPECT_TRUE(judge_balance(loads, settings).at(0).hot.empty());
  EXPECT_EQ(judge_balance(loads, over_a_job(settings)).at(0).hot, std::vector<std::size_t>{3});
  loads[3].sent.GBps = 2.7; // not twice the median
  EXPECT_TRUE(judge_balance(loads, over_a_job(settings)).at(0).hot.empty());
}

} // namespace
