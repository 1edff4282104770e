#include "src/instruments/bringup/job_networks.h"

#include <gtest/gtest.h>
#include <limits>

#include "src/base/error.h"

namespace shmemctl {
namespace {

TEST(JobNetworks, AreMergedFromWhatEveryPeSays) {
  const auto says = [](const std::string& here, const std::string& there,
                       std::vector<int> targets) {
    return networks_message({{0, "libfabric", {{{here, 1}, {there, 1}}}, std::move(targets)}});
  };
  const std::vector<NetworkRow> rows =
      merge_networks({says("eth0", "ib0", {1, 2}), says("eth0", "ib0", {2, 1}),
                      says("ib0", "eth0", {0}), says("ib0", "eth0", {0})},
                     {0, 0, 1, 2}, 3);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].first, (std::vector<int>{0}));
  EXPECT_EQ(rows[0].second, (std::vector<int>{1, 2}));
  EXPECT_EQ(links_text(rows[0]), "eth0 <-> ib0");
}

TEST(JobNetworks, AMessageOfAThousandNodesIsShort) {
  std::vector<int> targets;
  for (int node = 1; node < 1024; ++node)
    targets.push_back(node);
  EXPECT_LT(networks_message({{0, "libfabric", {{{"eth0", 1}, {"eth0", 1}}}, targets}}).size(),
            100u);
}

TEST(JobNetworks, WhatIsNoneIsRefused) {
  const std::string none = networks_message({});
  EXPECT_TRUE(merge_networks({none, none}, {0, 1}, 2).empty());
  const auto message = [](const std::string& transport, std::vector<int> targets) {
    return networks_message({{0, transport, {}, std::move(targets)}});
  };
  EXPECT_EQ(merge_networks({message("ucx", {1}), none}, {0, 1}, 2).size(), 1u);
  for (const std::string& bad :
       {std::string(), std::string("x"), message("ucx", {1}) + "x", message("ucx", {2}),
        message("ucx", {-1}), message("ucx", {std::numeric_limits<int>::max()}), message("", {1}),
        networks_message({{0, "ucx", {{{"eth0", 65536}, {"", 1}}}, {1}}}),
        networks_message({{0, "ucx", {{{"eth0", 1}, {"eth0", -1}}}, {1}}})})
    EXPECT_THROW(merge_networks({bad, none}, {0, 1}, 2), Error);
}

} // namespace
} // namespace shmemctl
