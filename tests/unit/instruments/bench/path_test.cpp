// Which PEs form a pair, and what a row reports about the path between them.
#include "src/instruments/bench/path.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/bringup/connections.h"
#include "tests/support/fork_job.h"

namespace shmemctl::bench {
namespace {

using shmemctl::test::PeResult;
using shmemctl::test::run_fork_job;

/// @param nodes by PE @param names by node
Placement job(const std::vector<int>& nodes, const std::vector<std::string>& names) {
  std::vector<PeHost> hosts;
  for (const int node : nodes) {
    PeHost host;
    host.host_name = names.at(static_cast<std::size_t>(node));
    host.machine_id = host.node_id = static_cast<std::uint64_t>(node) + 1;
    hosts.push_back(host);
  }
  return place(0, hosts);
}

TEST(DefaultPair, CrossesNodesWhereThereAreSeveral) {
  EXPECT_EQ(default_pair(job({0, 0, 1, 1}, {"a", "b"})), std::pair(0, 2));
  EXPECT_EQ(default_pair(job({0, 0, 0, 1}, {"a", "b"})), std::pair(0, 3));
  EXPECT_EQ(default_pair(job({0, 1, 0, 1}, {"a", "b"})), std::pair(0, 1));
  EXPECT_EQ(default_pair(job({0, 0}, {"a"})), std::pair(0, 1));
  EXPECT_EQ(default_pair(job({0}, {"a"})), std::pair(0, 1));
}

PathUse use_of(std::vector<std::string> transports, const std::vector<HcaPort>& nics) {
  PathUse use;
  use.measures = true;
  use.transports = std::move(transports);
  for (const HcaPort& nic : nics)
    use.ports.push_back({"", nic, std::nullopt});
  return use;
}

TEST(RowPathOf, NamesPesHostsTransportAndNics) {
  Point point;
  point.first_pe = 0;
  point.second_pe = 2;
  const Placement two = job({0, 0, 1, 1}, {"a", "b"});
  std::vector<PathUse> uses(4);
  uses[0] = use_of({"libfabric"}, {{"eth0", 1}});
  uses[2] = use_of({"libfabric"}, {{"eth9", 1}});
  uses[2].measures = false; // PE 2 only replies
  EXPECT_EQ(to_text(row_path(point, two, uses)), "PE 0 (a) -> PE 2 (b) by libfabric eth0");
  uses[0] = use_of({"ibrc"}, {{"mlx5_1", 2}, {"mlx5_0", 1}});
  EXPECT_EQ(to_text(row_path(point, two, uses)), "PE 0 (a) -> PE 2 (b) by ibrc mlx5_0, mlx5_1:2");
}

TEST(RowPathOf, BarriersOverANicAreNotThePathOfTheCase) {
  Point point; // PE 0 and PE 1, on one host of two
  std::vector<PathUse> uses(4);
  uses[0] = use_of({"shm"}, {{"eth0", 1}});
  EXPECT_EQ(to_text(row_path(point, job({0, 0, 1, 1}, {"a", "b"}), uses)),
            "PE 0 (a) -> PE 1 (a) by shm");
}

TEST(RowPathOf, NodesWithTheSameNameAreReported) {
  Point point;
  point.second_pe = 2;
  std::vector<PathUse> uses(4);
  uses[0] = use_of({"ucx"}, {});
  const RowPath path = row_path(point, job({0, 0, 1, 1}, {"node", "node"}), uses);
  EXPECT_EQ(to_text(path), "PE 0 (node, node 0) -> PE 2 (node, node 1) by ucx");
  const RowPath again = row_path_from_json(to_json(path));
  EXPECT_EQ(to_text(again), to_text(path));
}

TEST(RowPathOf, ManyPesHaveNoPair) {
  Point point;
  point.traffic = Traffic::all_to_all;
  std::vector<PathUse> uses(4);
  for (PathUse& use : uses)
    use = use_of({"libfabric", "shm"}, {{"eth0", 1}});
  EXPECT_EQ(to_text(row_path(point, job({0, 0, 1, 1}, {"a", "b"}), uses)),
            "by libfabric, shm (eth0)");
}

TEST(RowPathOf, CopiesToTheHostTakeNoNic) {
  Point point;
  point.traffic = Traffic::local;
  std::vector<PathUse> uses(4);
  for (PathUse& use : uses) // barriers between samples took one
    use = use_of({copy_engine_name}, {{"eth0", 1}});
  EXPECT_EQ(to_text(row_path(point, job({0, 0, 1, 1}, {"a", "b"}), uses)), "by copy engine");
}

TEST(ConnectionsInUse, OneConnectionForEachReachablePe) {
  const std::vector<PeResult> results =
      run_fork_job({.n_pes = 3, .body = [](Runtime& runtime) {
                      const std::vector<ConnectionRow> rows = merge_connections(
                          runtime.gather_text(connections_message(connections_in_use(runtime))));
                      std::string text;
                      for (const ConnectionRow& row : rows)
                        text += std::to_string(row.source) + ">" + std::to_string(row.target) +
                                " " + row.transport + " " + row.path + "\n";
                      return text;
                    }});
  for (const PeResult& result : results)
    EXPECT_EQ(result.text, "0>1 shm loads and stores\n0>2 shm loads and stores\n"
                           "1>0 shm loads and stores\n1>2 shm loads and stores\n"
                           "2>0 shm loads and stores\n2>1 shm loads and stores\n")
        << result.exit_code;
}

TEST(PlannedPath, IsThatOfTheOnlyPair) {
  const std::vector<PeResult> results =
      run_fork_job({.n_pes = 3, .body = [](Runtime& runtime) {
                      const auto text = [&](const std::vector<Point>& points) {
                        const std::optional<RowPath> path = planned_path(runtime, points);
                        if (!path)
                          return std::string("none\n");
                        const bool named = path->first && path->second;
                        return (named ? std::to_string(path->first->pe) + ">" +
                                            std::to_string(path->second->pe) + " "
                                      : std::string("no pair ")) +
                               join(path->transports, ",") + " " +
                               std::to_string(path->nics.size()) + " NICs\n";
                      };
                      Point pair, other, all, registered, of_matrix;
                      pair.second_pe = 2;
                      all.traffic = Traffic::collective;
                      registered.launch.memory = MemoryKind::registered;
                      of_matrix.of_matrix = true;
                      return text({all, pair, pair}) + text({pair, other}) + text({all}) +
                             text({}) + text({registered}) + text({of_matrix});
                    }});
  for (const PeResult& result : results)
    EXPECT_EQ(result.text, "0>2 shm 0 NICs\nnone\nnone\nnone\nnone\nnone\n") << result.exit_code;
}

TEST(GatheredPaths, AreThoseOfAllPes) {
  const std::vector<PeResult> results = run_fork_job(
      {.n_pes = 2, .body = [](Runtime& runtime) {
         Point point;
         PathUse own = own_path(runtime, point);
         own.measures = runtime.pe() == 0;
         own.tcp.sent = 7;
         const std::vector<PathUse> all = gather_paths(runtime, own);
         return to_text(row_path(point, runtime.placement(), all)).substr(0, 6) +
                all.at(0).transports.at(0) + std::to_string(all.at(1).transports.size()) +
                std::to_string(*all.at(1).tcp.sent) + (all.at(1).tcp.sent_again ? "?" : "-");
       }});
  for (const PeResult& result : results)
    EXPECT_EQ(result.text, "PE 0 (shm07-") << result.exit_code;
}

} // namespace
} // namespace shmemctl::bench
