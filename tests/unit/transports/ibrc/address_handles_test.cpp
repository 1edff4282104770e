// Address handles to each port's own addresses, as doctor tries them.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/fake_verbs.h"
#include "transports/verbs/address_handles.h"

namespace shmemctl::verbs {
namespace {

using shmemctl::test::FakeDevice;
using shmemctl::test::FakePort;
using shmemctl::test::FakeVerbs;

/// A RoCE device with IPv4 addresses at indices 1 and 3, and an InfiniBand one of LID 7.
std::vector<FakeDevice> roce_and_infiniband() {
  FakeDevice roce, infiniband;
  roce.name = "mlx5_0";
  roce.ports[0].gids = {test::ipv4_gid(1, 1), test::ipv4_gid(3, 9)};
  infiniband.name = "mlx5_1";
  infiniband.ports[0].ethernet = false;
  infiniband.ports[0].lid = 7;
  return {roce, infiniband};
}

TEST(AddressHandles, EachAddressIsTried) {
  FakeVerbs fake(roce_and_infiniband());
  std::vector<ibv_ah_attr> asked;
  fake.no_address_handle = [&asked](const ibv_ah_attr& to) {
    asked.push_back(to);
    return to.is_global != 0 && to.grh.dgid.raw[15] == 9 ? EHOSTUNREACH : 0;
  };
  const auto outcomes = try_address_handles(
      fake.functions(), {{"mlx5_0", 1, 1}, {"mlx5_0", 1, 3}, {"mlx5_1", 1, 0, true}});
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].text, "10.0.0.1");
  EXPECT_EQ(outcomes[0].error_number, 0);
  EXPECT_EQ(outcomes[1].address.gid_index, 3);
  EXPECT_EQ(outcomes[1].text, "10.0.0.9");
  EXPECT_EQ(outcomes[1].error_number, EHOSTUNREACH);
  EXPECT_EQ(outcomes[2].text, "LID 7");
  EXPECT_EQ(outcomes[2].error_number, 0);
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(asked[1].grh.sgid_index, 3);
  EXPECT_EQ(asked[1].port_num, 1);
  EXPECT_EQ(asked[2].is_global, 0);
  EXPECT_EQ(asked[2].dlid, 7);
  EXPECT_EQ(fake.open_objects.load(), 0U) << "handles, domains and devices are closed";
}

TEST(AddressHandles, WhatCannotBeTried) {
  std::vector<FakeDevice> devices = roce_and_infiniband();
  devices[1].open_error = EACCES;
  FakeVerbs fake(devices);
  const auto outcomes = try_address_handles(
      fake.functions(),
      {{"mlx5_0", 1, 5}, {"mlx5_1", 1, 0, true}, {"gone", 1, 0}, {"mlx5_0", 1, 1}});
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_EQ(outcomes[0].untried, "the port has no GID of index 5");
  EXPECT_NE(outcomes[1].untried.find("uverbs_mlx5_1"), std::string::npos) << outcomes[1].untried;
  EXPECT_EQ(outcomes[2].untried, "libibverbs does not list the device");
  EXPECT_EQ(outcomes[3].untried, "");
}

TEST(AddressHandles, ALibraryThatIsNotThere) {
  const AddressOutcomes result = try_address_handles("libibverbs.so.none", {{"mlx5_0", 1, 1}});
  EXPECT_NE(result.unusable, "");
  EXPECT_TRUE(result.outcomes.empty());
}

} // namespace
} // namespace shmemctl::verbs
