// Every RoCE port with an unsuitable GID table is named, and every port that lacks an index.
#include <gtest/gtest.h>

#include "src/base/text.h"
#include "src/instruments/doctor/settings.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

namespace {

/// These checks use only the node and the environment.
CheckResult gid_result(const std::string& id, const Node& node, const Environment& environment) {
  const Sysroot sysroot("/");
  for (const Check& check : all_checks())
    if (check.id == id)
      return check.run({sysroot, node, environment});
  throw std::logic_error("no check " + id);
}

/// Both ports with the first GIDs of their tables only: the first two are link-local.
Node with_gids(std::size_t first_count, std::size_t second_count) {
  Node node = roce_node();
  node.nics[0].ports[0].gids.resize(first_count);
  node.nics[1].ports[0].gids.resize(second_count);
  return node;
}

/// The environment after the exports of a fix.
Environment exported(Environment environment, const std::string& fix) {
  for (const std::string& command : split(fix.substr(0, fix.find("  #")), ';')) {
    const std::vector<std::string> words = split_blanks(command);
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      if (words[0] == "unset")
        environment.erase(words[i]);
      else
        environment[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
  }
  return environment;
}

} // namespace

TEST(GidTable, NamesEveryBadPort) {
  const CheckResult both = gid_result("rdma-gid-table", with_gids(2, 2), {});
  EXPECT_EQ(both.status, CheckStatus::fail);
  EXPECT_EQ(both.reason, "mlx5_0:1, mlx5_1:1 have only link-local GIDs, which are not routable");
  const CheckResult each = gid_result("rdma-gid-table", with_gids(0, 2), {});
  EXPECT_EQ(each.reason,
            "mlx5_0:1 has no GID at all; mlx5_1:1 has only link-local GIDs, which are not "
            "routable");
  EXPECT_NE(each.fix.find("mlx5_0:1: ip address add"), std::string::npos) << each.fix;
  EXPECT_NE(each.fix.find("mlx5_1:1: ip address add"), std::string::npos) << each.fix;
}

TEST(GidsInUse, ThoseThatReachOthersAndThoseThatAreAskedFor) {
  const auto in_use = [](const Node& node, const Environment& environment) {
    const doctor::RdmaPort at{&node.nics[0], &node.nics[0].ports[0]};
    return doctor::gid_indices_in_use(at, environment);
  };
  EXPECT_EQ(in_use(roce_node(), {}), (std::set<int>{3}));
  EXPECT_EQ(in_use(roce_node(), {{"NCCL_IB_GID_INDEX", "1"}, {"UCX_IB_GID_INDEX", "auto"}}),
            (std::set<int>{1, 3}));
  EXPECT_EQ(in_use(roce_node(), {{"NVSHMEM_IB_GID_INDEX", "9"}}), (std::set<int>{3}))
      << "rdma-gid-index names what is not there";
  EXPECT_EQ(in_use(with_gids(2, 2), {}), (std::set<int>{0, 1}))
      << "link-local ones, if that is all";
  EXPECT_EQ(in_use(healthy_node(), {}), (std::set<int>{0})) << "InfiniBand";
}

TEST(GidIndex, AWrongOneIsAnErrorWhateverElseIsWrong) {
  const CheckResult result =
      gid_result("rdma-gid-index", with_gids(2, 4), {{"NVSHMEM_IB_GID_INDEX", "0"}});
  EXPECT_EQ(result.status, CheckStatus::fail) << result.reason;
  EXPECT_NE(result.reason.find("mlx5_0:1, mlx5_1:1"), std::string::npos) << result.reason;
}

/// Exports are tried on the check itself.
TEST(GidFixes, WhatIsExportedHeals) {
  for (const std::size_t first : {0U, 1U, 2U, 3U, 4U})
    for (const std::size_t second : {0U, 1U, 2U, 3U, 4U})
      for (const char* index : {"", "0", "1", "2", "3", "-1"}) {
        const Node node = with_gids(first, second);
        Environment environment;
        if (*index != '\0')
          environment["NVSHMEM_IB_GID_INDEX"] = index;
        for (const char* id : {"rdma-gid-table", "rdma-gid-index"}) {
          const CheckResult before = gid_result(id, node, environment);
          if (!starts_with(before.fix, "export ") && !starts_with(before.fix, "unset "))
            continue;
          const CheckResult after = gid_result(id, node, exported(environment, before.fix));
          EXPECT_TRUE(after.status == CheckStatus::pass || after.status == CheckStatus::skipped)
              << id << ": " << before.fix << " leaves: " << after.reason;
        }
      }
}

} // namespace shmemctl
