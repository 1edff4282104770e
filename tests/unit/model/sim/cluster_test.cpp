// Clusters, times and their bottlenecks, what-ifs, groups, bad input.
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "src/base/text.h"
#include "src/model/sim/summary.h"
#include "tests/support/expect_error.h"
#include "tests/support/suggested.h"
#include "tests/unit/model/sim/sim_world.h"

namespace shmemctl::test {
namespace {

using sim::Resource;

TEST(SimCluster, ranks_use_the_ports_that_the_mapping_gives_them) {
  const sim::Cluster cluster = small_cluster(2, 4);
  ASSERT_EQ(cluster.ports.size(), 4U);
  EXPECT_DOUBLE_EQ(cluster.ports[0].rate_GBps, 50);
  for (int pe = 0; pe < 4; ++pe)
    EXPECT_EQ(cluster.kind(1).ports_of_pe[static_cast<std::size_t>(pe)], std::vector<int>{pe});
  EXPECT_EQ(cluster.fabric_ports(), 4);
}

TEST(SimCluster, a_dead_nic_is_mapped_around_and_a_slow_one_is_not) {
  const sim::Cluster dead = small_cluster(3, 4, {}, {{1, "mlx5_2", {}, 0}});
  EXPECT_EQ(dead.kinds.size(), 2U);
  EXPECT_EQ(dead.kind(0).ports_of_pe, dead.kind(2).ports_of_pe);
  for (const std::vector<int>& ports : dead.kind(1).ports_of_pe)
    for (const int port : ports)
      EXPECT_NE(port, 2);
  const sim::Cluster slow = small_cluster(3, 4, {}, {{{}, "mlx5_2", {}, 0.5}});
  EXPECT_EQ(slow.kind(1).ports_of_pe, dead.kind(0).ports_of_pe);
  EXPECT_DOUBLE_EQ(slow.kind(1).rate_GBps[2], 25);
  EXPECT_DOUBLE_EQ(slow.kind(1).rate_GBps[1], 50);
}

TEST(SimCluster, has_the_nics_that_topo_calls_the_fabric) {
  testing::NodeBuilder builder = testing::NodeBuilder::hgx(4);
  const int root = builder.host_bridge(0);
  builder.nic_at_root(root, "mlx5_8"); // for storage: no GPU is near
  builder.nic_at_root(root, "mlx5_9", {{1, PortState::active, LinkLayer::ethernet, 25}});
  sim::ClusterRequest request;
  request.nodes = 2;
  request.mapping = mapping_of(builder.node, Policy::nvshmem);
  request.link_GBps = 400;
  const auto fabric_of = [&] {
    std::vector<std::string> names;
    for (const sim::Port& port : build_cluster(builder.node, request).ports)
      names.push_back(port.device + (port.on_fabric ? "" : " off"));
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(fabric_of(), (Names{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}));
  // What the operator excludes is not idle, and counts in no even share.
  request.mapping.nvshmem.hca_list = "^mlx5_3";
  EXPECT_EQ(fabric_of(), (Names{"mlx5_0", "mlx5_1", "mlx5_2"}));
  // What a PE uses nevertheless is there, and not of the fabric.
  request.mapping.nvshmem.hca_list = "mlx5_0,mlx5_1,mlx5_2,mlx5_9";
  request.mapping.nvshmem.enable_nic_pe_mapping = true;
  EXPECT_EQ(fabric_of(), (Names{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_9 off"}));
}

TEST(SimLoads, the_slowest_is_what_its_bytes_keep_busy_longest) {
  const sim::Cluster cluster = small_cluster(4, 2, {sim::FabricKind::fat_tree, 2, 4});
  sim::Loads loads(sim::Group{&cluster, 0, 4});
  EXPECT_FALSE(loads.slowest());
  loads.add(0, 1, 4e6); // 400 GB/s between GPUs: 10 us
  EXPECT_EQ(loads.slowest()->resource, Resource::gpu_out);
  EXPECT_DOUBLE_EQ(loads.slowest()->time_us, 10);
  loads.add(0, 2, 1e6); // 50 GB/s: 20 us, under one leaf switch
  EXPECT_EQ(loads.slowest()->resource, Resource::nic_out);
  EXPECT_DOUBLE_EQ(loads.slowest()->time_us, 20);
  // From one leaf to the other: 4 ports of 50 GB/s with a quarter upwards are 50 GB/s for both.
  loads.add(1, 4, 1e6);
  loads.add(3, 5, 1e6);
  EXPECT_EQ(loads.slowest()->resource, Resource::uplink);
  EXPECT_DOUBLE_EQ(loads.slowest()->time_us, 40);
  EXPECT_EQ(loads.name_of(Resource::uplink, 0), "leaf switch 0 up");
  EXPECT_EQ(loads.name_of(Resource::nic_in, 3), "node 1 mlx5_1/1 in");
}

TEST(SimLoads, rails_cross_switches_only_between_rails_and_blocks) {
  const sim::Cluster cluster = small_cluster(4, 2, {sim::FabricKind::rail, 2, 1});
  sim::Loads loads(sim::Group{&cluster, 0, 4});
  loads.add(0, 2, 100); // same rail, same block
  EXPECT_EQ(loads.up, std::vector<double>({0, 0, 0, 0}));
  loads.add(0, 3, 10); // to the other rail
  EXPECT_EQ(loads.up, std::vector<double>({10, 0, 0, 0}));
  EXPECT_EQ(loads.down, std::vector<double>({0, 10, 0, 0}));
  loads.add(0, 4, 1); // to the other block
  EXPECT_EQ(loads.up, std::vector<double>({11, 0, 0, 0}));
  EXPECT_EQ(loads.down, std::vector<double>({0, 10, 1, 0}));
}

TEST(SimGroups, alike_ones_are_simulated_once_and_reported_all) {
  const sim::Cluster cluster =
      small_cluster(8, 2, {sim::FabricKind::rail, 32, 1}, {{5, "mlx5_0", {}, 0.5}});
  sim::Request request = small_request(8, 16, 2, 32);
  request.ep_ranks = 4;
  request.steps = 200;
  const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
  const sim::Result result = simulate({&cluster}, traffic, effort_of(request, traffic)).front();
  ASSERT_EQ(result.classes.size(), 2U); // the group with node 5, and the three others
  EXPECT_EQ(result.classes[0].groups.first_nodes, std::vector<int>({0, 2, 6}));
  EXPECT_EQ(result.classes[1].groups.first_nodes, std::vector<int>({4}));
  const sim::Summary summary = summarize("given", result, traffic);
  ASSERT_EQ(summary.nics.size(), 16U);
  for (const sim::NicBytes& nic : summary.nics)
    EXPECT_NEAR(nic.out, summary.even_bytes, 1e-6); // uniform: all alike, exactly
  // Rank 2 of the slow group sends and receives at half the rate.
  EXPECT_GT(summary.step().time_us.mean, 1.5 * sim::estimate_mean(result.classes[0].step_us).mean);
  ASSERT_TRUE(summary.slowest_group_us);
  EXPECT_GE(summary.slowest_group_us->mean, summary.step().time_us.mean - 1e-9);
}

TEST(SimGroups, the_slowest_of_many_is_the_largest_of_as_many_draws) {
  // Against the definition: the mean of the largest over all subsets of 3 of 8 samples.
  const sim::Cluster cluster = small_cluster(6, 2);
  sim::Request request = small_request(6, 8, 2, 50);
  request.ep_ranks = 4;
  request.steps = 8;
  const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
  sim::Result result = simulate({&cluster}, traffic, effort_of(request, traffic)).front();
  ASSERT_EQ(result.classes.size(), 1U);
  ASSERT_EQ(result.classes[0].groups.first_nodes.size(), 3U);
  const std::vector<double>& samples = result.classes[0].step_us;
  double sum = 0;
  int ways = 0;
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < i; ++j)
      for (std::size_t k = 0; k < j; ++k, ++ways)
        sum += std::max({samples[i], samples[j], samples[k]});
  const sim::Estimate slowest = sim::estimate_slowest(result.classes);
  EXPECT_NEAR(slowest.mean, sum / ways, 1e-9);
  EXPECT_TRUE(slowest.margin);
}

TEST(SimResult, the_same_seed_gives_the_same_and_another_does_not) {
  const sim::Cluster cluster = small_cluster(4, 2);
  for (const char* sample : {"tokens", "counts"}) {
    std::vector<std::vector<double>> times;
    for (const std::uint64_t seed : {3, 3, 4}) {
      sim::Request request = small_request(4, 32, 4, 100);
      request.seed = seed;
      request.sample = sample;
      request.steps = 20;
      const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
      times.push_back(
          simulate({&cluster}, traffic, effort_of(request, traffic)).front().classes[0].step_us);
    }
    EXPECT_EQ(times[0], times[1]);
    EXPECT_NE(times[0], times[2]);
  }
}

TEST(SimResult, a_collapsed_mapping_has_its_price) {
  const Node node = testing::NodeBuilder::hgx(2, 2, 2).node; // pairs behind each switch
  MappingRequest mapping = mapping_of(node, Policy::nvshmem);
  mapping.world = World::deepep_ht;
  sim::Request request = small_request(4, 64, 8, 64);
  request.link_GBps = 400;
  const sim::Cluster cluster = build_cluster(node, cluster_of(request, mapping));
  const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
  const sim::Variants variants = simulate_variants(node, request, mapping, traffic);
  ASSERT_EQ(variants.names, std::vector<std::string>({"given", "optimal"}));
  std::vector<sim::Summary> summaries;
  for (std::size_t i = 0; i < 2; ++i)
    summaries.push_back(summarize(variants.names[i], variants.results[i], traffic));
  EXPECT_NEAR(summaries[0].over_even(), 2, 1e-9);
  EXPECT_NEAR(summaries[1].over_even(), 1, 1e-9);
  EXPECT_NEAR(summaries[0].step().time_us.mean / summaries[1].step().time_us.mean, 2, 0.2);
  const Findings findings = simulation_findings(summaries);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "nic-hotspot-predicted");
  // Half of the NICs carry everything, on every node: none of them alone is to blame.
  EXPECT_EQ(findings[0].subject, "mlx5_0/1, mlx5_2/1");
  EXPECT_TRUE(starts_with(findings[0].message, "mlx5_0/1, mlx5_2/1 of every node carry "))
      << findings[0].message;
  EXPECT_EQ(summaries[0].alike, 8U);
  EXPECT_FALSE(summaries[0].is_even());
  EXPECT_TRUE(summaries[1].is_even());
  EXPECT_EQ(summaries[0].step().limited_by, "8 of 16 NICs (out and in)");
  EXPECT_EQ(summaries[1].step().limited_by, "every NIC (out and in)");
  const nlohmann::json json = simulation_json(summaries, {traffic, {}, {}, 3});
  EXPECT_EQ(json.at("variants")[0].at("nics").size(), 3U);
  EXPECT_EQ(json.at("variants")[0].at("nics_left_out"), 4 * 4 - 3);
  EXPECT_NEAR(json.at("price_of_mapping").get<double>(), 2, 0.2);
}

TEST(SimResult, the_best_mapping_is_not_drawn_again_where_it_is_the_given_one) {
  const Node node = testing::NodeBuilder::hgx(4).node;
  const MappingRequest mapping = mapping_of(node, Policy::nvshmem);
  sim::Request request = small_request(4, 64, 8, 64);
  request.kill_nics = {"0/mlx5_0"};
  const sim::Cluster cluster = build_cluster(node, cluster_of(request, mapping));
  const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
  const sim::Variants variants = simulate_variants(node, request, mapping, traffic);
  ASSERT_EQ(variants.names, std::vector<std::string>({"given", "optimal", "what-if"}));
  ASSERT_TRUE(variants.clusters[1].same_nics(variants.clusters[0]));
  EXPECT_FALSE(variants.clusters[2].same_nics(variants.clusters[0]));
  const std::vector<sim::Result> drawn =
      simulate({&variants.clusters[0], &variants.clusters[1], &variants.clusters[2]}, traffic,
               effort_of(request, traffic));
  ASSERT_EQ(variants.results.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(variants.results[i].cluster, &variants.clusters[i]);
    ASSERT_EQ(variants.results[i].classes.size(), drawn[i].classes.size());
    for (std::size_t c = 0; c < drawn[i].classes.size(); ++c)
      EXPECT_EQ(variants.results[i].classes[c].step_us, drawn[i].classes[c].step_us);
  }
}

TEST(SimRequest, bad_input_names_the_rule_and_the_nearest_legal_value) {
  const sim::Cluster cluster = small_cluster(4, 2);
  const auto refused = [&](const std::function<void(sim::Request&)>& change,
                           const std::initializer_list<const char*>& words, const char* fix) {
    sim::Request request = small_request(4, 32, 4, 8);
    change(request);
    const std::string text = expect_error(ExitCode::usage, words, [&] {
      const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
      moved(traffic, what_if_of(request).moves);
      effort_of(request, traffic);
    });
    EXPECT_NE(text.find(fix), std::string::npos) << text;
  };
  using R = sim::Request;
  refused([](R& r) { r.experts = 30; }, {"30 experts", "8 ranks"}, "--ep-ranks 2");
  refused([](R& r) { r.experts = 7; }, {"7 experts"}, "--num-experts 8");
  refused([](R& r) { r.ep_ranks = 3; }, {"whole number of nodes"}, "--ep-ranks ");
  refused([](R& r) { r.ep_ranks = 6; }, {"groups of 6"}, "--ep-ranks ");
  refused([](R& r) { r.top_k = 40; }, {"num-topk"}, "nearest legal value: 32");
  refused([](R& r) { r.routing = "zpif"; }, {"unknown value"}, "zipf");
  refused([](R& r) { r.pattern = "alltoall"; }, {"unknown pattern"}, "all-to-all");
  refused([](R& r) { r.routing = "grouped", r.groups = 5; }, {"equal groups"}, "--num-groups");
  refused([](R& r) { r.steps = 0, r.routing = "zipf"; }, {"--steps 0"}, "--steps 1");
  refused([](R& r) { r.sample = "counts", r.mode = "ll"; }, {"--sample"}, "--sample tokens");
  refused([](R& r) { r.move_experts = {"32:0"}; }, {"no expert 32"}, "31:0");
  refused([](R& r) { r.move_experts = {"1:8"}; }, {"no rank 8"}, "1:7");
  refused([](R& r) { r.move_experts = {"1"}; }, {"EXPERT:RANK"}, "5:12");
  refused([](R& r) { r.flat = true, r.mode = "ll"; }, {"--flat"}, "--mode ht");
  refused([](R& r) { r.copies = "choice"; }, {"--copies"}, "--mode ll");
  const auto of_pattern = [](const std::function<void(R&)>& change) {
    return [change](R& r) {
      r = {};
      r.pattern = "put-ring";
      change(r);
    };
  };
  refused(of_pattern([](R& r) { r.size = "x"; }), {"not a size"}, "64K");
  const std::pair<const char*, std::function<void(R&)>> of_moe[] = {
      {"--ep-ranks", [](R& r) { r.ep_ranks = 8; }},
      {"--num-tokens", [](R& r) { r.tokens = 128; }},
      {"--hidden", [](R& r) { r.hidden = 256; }},
      {"--num-topk", [](R& r) { r.top_k = 8; }},
      {"--num-experts", [](R& r) { r.experts = 32; }},
      {"--routing", [](R& r) { r.routing = "./file"; }},
      {"--num-groups", [](R& r) { r.groups = 2; }},
      {"--num-topk-groups", [](R& r) { r.top_groups = 2; }},
      {"--masked", [](R& r) { r.masked_percent = 5; }},
      {"--uneven", [](R& r) { r.uneven = true; }},
      {"--mode", [](R& r) { r.mode = "ll"; }},
      {"--flat", [](R& r) { r.flat = true; }},
      {"--dtype", [](R& r) { r.dtype = "fp8"; }},
      {"--combine", [](R& r) { r.combine = "partial"; }},
      {"--copies", [](R& r) { r.copies = "choice"; }},
      {"--seed", [](R& r) { r.seed = 2; }},
      {"--steps", [](R& r) { r.steps = 0; }},
      {"--sample", [](R& r) { r.sample = "tokens"; }},
      {"--move-expert", [](R& r) { r.move_experts = {"1:2"}; }}};
  for (const auto& [flag, set] : of_moe)
    refused(of_pattern(set), {flag, "only --pattern moe"}, "--pattern moe");

  moe::RecordedRouting recorded;
  recorded.shape.n_ranks = 4;
  sim::Request request;
  request.routing = "./file";
  request.ep_ranks = 8;
  expect_error(ExitCode::usage, {"recorded with 4 ranks"},
               [&] { traffic_of(request, cluster, recorded); });
}

void apply_sim_flag(sim::Request& request, const std::string& flag, const std::string& value) {
  if (flag == "num-experts")
    request.experts = std::stoi(value);
  else if (flag == "num-topk")
    request.top_k = std::stoi(value);
  else if (flag == "ep-ranks")
    request.ep_ranks = std::stoi(value);
  else if (flag == "hidden")
    request.hidden = std::stoi(value);
  else if (flag == "num-tokens")
    request.tokens = std::stoi(value);
  else if (flag == "num-groups")
    request.groups = std::stoi(value);
  else if (flag == "num-topk-groups")
    request.top_groups = std::stoi(value);
  else if (flag == "move-expert" || flag == "--move-expert")
    request.move_experts = {value};
  else if (flag == "steps")
    request.steps = std::stoi(value);
  else
    ADD_FAILURE() << "no such flag: " << flag;
}

TEST(SimRequest, what_is_suggested_is_accepted) {
  std::mt19937 random(26);
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (const auto& [nodes, pairs] : {std::pair(4, 2), std::pair(3, 4), std::pair(6, 8)}) {
    const sim::Cluster cluster = small_cluster(nodes, pairs);
    const auto attempt = [&](const sim::Request& request) {
      const sim::Traffic traffic = traffic_of(request, cluster, std::nullopt);
      moved(traffic, what_if_of(request).moves);
      effort_of(request, traffic);
    };
    const int ranks = nodes * pairs;
    for (int round = 0; round < 300; ++round) {
      sim::Request request = small_request(nodes, 8 * ranks, 1 + below(8), 8);
      if (below(2) == 1) {
        request.routing = "grouped";
        request.steps = 1;
      }
      ASSERT_NO_THROW(attempt(request));
      const int what = below(8);
      switch (what) {
      case 0:
        request.experts = 8 * ranks + 1 + below(ranks - 1);
        break;
      case 1:
        request.experts = below(2) == 0 ? 0 : 65537 + below(1000);
        break;
      case 2:
        request.ep_ranks = 1 + below(3 * ranks);
        break;
      case 3:
        request.hidden = below(3000);
        break;
      case 4:
        request.top_k = below(2) == 0 ? 0 : 33 + below(100);
        break;
      case 5:
        request.move_experts = {fmt::format("{}:{}", below(20 * ranks), below(3 * ranks))};
        break;
      case 6:
        request.groups = below(2 * ranks);
        break;
      default:
        request.top_groups = below(20);
      }
      if (request.routing != "grouped") {
        request.groups = sim::Request().groups;
        request.top_groups = sim::Request().top_groups;
      }
      SCOPED_TRACE(::testing::Message() << nodes << " x " << pairs << ", change " << what);
      expect_suggestions_accepted(request, attempt, apply_sim_flag);
      if (::testing::Test::HasFatalFailure())
        return;
    }
  }
}

TEST(SimRequest, bad_changes_name_what_there_is) {
  const Node node = testing::NodeBuilder::hgx(4).node;
  EXPECT_EQ(sim::parse_dead_nic("17/mlx5_3:1").node, 17);
  EXPECT_EQ(sim::parse_dead_nic("17/mlx5_3:1").port, 1);
  EXPECT_EQ(sim::parse_slow_nic("mlx5_3=0.5").rate_share, 0.5);
  for (const char* text : {"", "/mlx5_0", "x/mlx5_0", "0/", "mlx5_0:", "-1/mlx5_0", "0/mlx5_0:x"})
    expect_error(ExitCode::usage, {"--kill-nic"}, [&] { sim::parse_dead_nic(text); });
  for (const char* text : {"mlx5_0", "mlx5_0=0", "mlx5_0=2", "mlx5_0=nan", "=0.5", "mlx5_0=-1"})
    expect_error(ExitCode::usage, {"--slow-nic"}, [&] { sim::parse_slow_nic(text); });
  const auto fix = [&](const char* text) {
    return expect_error(ExitCode::usage, {"--kill-nic"},
                        [&] { require_known(sim::parse_dead_nic(text), node, 4); });
  };
  EXPECT_NE(fix("mlx5_O").find("did you mean"), std::string::npos);
  EXPECT_NE(fix("4/mlx5_0").find("pass node 3, the nearest one"), std::string::npos);
  EXPECT_NE(fix("mlx5_0:2").find("pass mlx5_0:1, which exists"), std::string::npos);
}

TEST(SimRequest, a_topology_that_cannot_carry_traffic_is_refused) {
  const auto refused = [](const Node& node, const std::initializer_list<const char*>& words) {
    sim::ClusterRequest request;
    request.mapping = mapping_of(node);
    return expect_error(ExitCode::usage, words, [&] { build_cluster(node, request); });
  };
  testing::NodeBuilder no_nic;
  no_nic.gpu(no_nic.pcie_switch(no_nic.host_bridge(0)));
  refused(no_nic.node, {"no usable NIC"});
  refused(Node{}, {"no GPU"});
  const Node no_rate = testing::NodeBuilder::from_matrix({"mlx5_0"}, {{"PIX"}});
  EXPECT_NE(refused(no_rate, {"no rate for mlx5_0/1"}).find("--nic-gbits"), std::string::npos);
  const Node node = testing::NodeBuilder::hgx(2).node;
  sim::ClusterRequest all_dead;
  all_dead.mapping = mapping_of(node);
  all_dead.changes = {{{}, "mlx5_0", {}, 0}, {{}, "mlx5_1", {}, 0}};
  expect_error(ExitCode::usage, {"no RDMA device has a usable port"},
               [&] { build_cluster(node, all_dead); });
}

} // namespace
} // namespace shmemctl::test
