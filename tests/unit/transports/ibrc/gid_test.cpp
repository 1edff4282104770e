// Which GID a connection uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/expect_error.h"
#include "transports/verbs/gid.h"

namespace shmemctl::verbs {
namespace {

using shmemctl::test::expect_error;

RawGid ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}
RawGid ipv6(std::uint8_t first, std::uint8_t second, std::uint8_t last) {
  return {first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

/// As on a mlx5 port: link-local and IPv4, each for both versions of RoCE, and an IPv6.
std::vector<GidEntry> mlx5_table() {
  return {{0, GidType::roce_v1, ipv6(0xfe, 0x80, 1)}, {1, GidType::roce_v2, ipv6(0xfe, 0x80, 1)},
          {2, GidType::roce_v1, ipv4(10, 1, 2, 3)},   {3, GidType::roce_v2, ipv4(10, 1, 2, 3)},
          {4, GidType::roce_v2, ipv6(0xfd, 0x00, 7)}, {5, GidType::roce_v2, ipv4(192, 168, 0, 9)},
          {6, GidType::roce_v2, ipv6(0, 0, 0)},       {300, GidType::roce_v2, ipv4(10, 1, 9, 9)}};
}

std::vector<int> indices(const std::vector<GidEntry>& entries) {
  std::vector<int> list;
  for (const GidEntry& entry : entries)
    list.push_back(entry.index);
  return list;
}
std::vector<int> chosen(const GidRequest& request) {
  return indices(gid_candidates(mlx5_table(), request));
}

TEST(Gid, RoceV2AndIpv4FirstAndLinkLocalLast) {
  EXPECT_EQ(chosen({}), (std::vector<int>{3, 4, 2, 1, 0}));
}

TEST(Gid, TheOrderOfTheTableIsOfNoMatter) {
  std::vector<GidEntry> table = mlx5_table();
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(table.begin(), table.end(), random);
    EXPECT_EQ(indices(gid_candidates(table, {})), (std::vector<int>{3, 4, 2, 1, 0}));
  }
}

TEST(Gid, WhatIsAskedForIsACondition) {
  GidRequest request;
  request.roce_version = 1;
  EXPECT_EQ(chosen(request), (std::vector<int>{2, 0}));
  request.roce_version = 2;
  EXPECT_EQ(chosen(request), (std::vector<int>{3, 4, 1}));
  request.ipv6 = true;
  EXPECT_EQ(chosen(request), (std::vector<int>{4, 1}));
  request.ipv6 = false;
  EXPECT_EQ(chosen(request), (std::vector<int>{3}));
  request.range = parse_address_range("192.168.0.0/16");
  EXPECT_EQ(chosen(request), (std::vector<int>{5}));
  request.range = parse_address_range("172.16.0.0/12");
  EXPECT_EQ(chosen(request), (std::vector<int>{}));
}

TEST(Gid, AnIndexIsTakenWhateverItIs) {
  GidRequest request;
  request.ipv6 = true; // without effect if an index is given
  for (const int index : {0, 1, 2, 3, 4, 5}) {
    request.index = index;
    EXPECT_EQ(chosen(request), (std::vector<int>{index}));
  }
  request.index = 6; // empty
  EXPECT_TRUE(chosen(request).empty());
  request.index = 300; // the connecting call has one byte for the index
  EXPECT_TRUE(chosen(request).empty());
}

TEST(Gid, InfinibandHasNoVersionsAndNoFamilies) {
  const std::vector<GidEntry> table = {{0, GidType::infiniband, ipv6(0xfe, 0x80, 4)},
                                       {1, GidType::infiniband, ipv6(0x20, 0x01, 4)}};
  GidRequest request;
  request.roce_version = 2;
  request.ipv6 = false;
  EXPECT_EQ(indices(gid_candidates(table, request)), (std::vector<int>{0}));
  request.index = 1;
  EXPECT_EQ(indices(gid_candidates(table, request)), (std::vector<int>{1}));
}

TEST(Gid, KindsAndTexts) {
  EXPECT_EQ(kind_of({0, GidType::roce_v2, ipv4(1, 2, 3, 4)}), GidKind::v2_ipv4);
  EXPECT_EQ(kind_of({0, GidType::roce_v2, ipv6(0xfe, 0xbf, 1)}), GidKind::v2_link_local);
  EXPECT_EQ(kind_of({0, GidType::roce_v2, ipv6(0xfe, 0xc0, 1)}), GidKind::v2_ipv6);
  EXPECT_EQ(kind_of({0, GidType::roce_v1, ipv6(0x20, 1, 1)}), GidKind::v1_ipv6);
  EXPECT_EQ(gid_text(ipv4(1, 2, 3, 4)), "1.2.3.4");
  EXPECT_EQ(gid_text(ipv6(0xfe, 0x80, 1)), "fe80::1");
  for (int kind = 0; kind < gid_kinds; ++kind)
    EXPECT_STRNE(to_string(static_cast<GidKind>(kind)), "unknown");
}

TEST(Gid, ReasonNamesTableAndRequest) {
  GidRequest request;
  request.roce_version = 1;
  request.ipv6 = false;
  const std::vector<GidEntry> table = {{1, GidType::roce_v2, ipv4(10, 0, 0, 1)}};
  EXPECT_EQ(no_gid_reason(table, request),
            "its GID table has 1 is RoCE v2 IPv4 10.0.0.1; the options ask for RoCE v1, IPv4");
  request.index = 7;
  EXPECT_EQ(no_gid_reason({}, request), "its GID table has no entry; the options ask for index 7");
}

TEST(AddressRange, Parses) {
  EXPECT_FALSE(parse_address_range(""));
  EXPECT_FALSE(parse_address_range("::/0")); // NVSHMEM's default: any
  EXPECT_FALSE(parse_address_range("0.0.0.0/0"));
  EXPECT_EQ(parse_address_range("10.0.0.0/8")->bits, 104);
  EXPECT_EQ(parse_address_range("fd00::/8")->bits, 8);
  for (const char* bad : {"10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "/8", "fd00::/129", "x/8",
                          "10.0.0/8", "10.0.0.0/8/8", "10.0.0.0/8x", "/", "10.0.0.0/ 8"})
    expect_error(ExitCode::usage, {"IB_ADDR_RANGE", bad}, [&] { parse_address_range(bad); });
}

TEST(AddressRange, ContainsByBits) {
  const auto in = [](const char* range, const RawGid& raw) {
    return parse_address_range(range)->contains(raw);
  };
  EXPECT_TRUE(in("10.1.0.0/16", ipv4(10, 1, 255, 255)));
  EXPECT_FALSE(in("10.1.0.0/16", ipv4(10, 2, 0, 0)));
  EXPECT_TRUE(in("10.1.128.0/17", ipv4(10, 1, 128, 0)));
  EXPECT_FALSE(in("10.1.128.0/17", ipv4(10, 1, 127, 255)));
  EXPECT_TRUE(in("10.1.2.3/32", ipv4(10, 1, 2, 3)));
  EXPECT_FALSE(in("10.1.2.3/32", ipv4(10, 1, 2, 2)));
  EXPECT_FALSE(in("10.0.0.0/8", ipv6(10, 0, 0)));
  EXPECT_TRUE(in("fd00::/8", ipv6(0xfd, 0xff, 1)));
  EXPECT_FALSE(in("fd00::/8", ipv6(0xfc, 0, 1)));
  EXPECT_TRUE(in("fe80::/10", ipv6(0xfe, 0xbf, 1)));
  EXPECT_FALSE(in("fe80::/10", ipv6(0xfe, 0xc0, 1)));
}

/// ibrc, ibdevx and ibgda: the defaults restrict nothing.
TEST(GidRequest, OptionsRestrictOnlyIfTheyAreSet) {
  const GidRequest defaults = read_gid_request(Options({}));
  EXPECT_EQ(defaults.index, -1);
  EXPECT_FALSE(defaults.roce_version || defaults.ipv6 || defaults.range);
  const GidRequest set = read_gid_request(Options({}, {{"IB_GID_INDEX", "3"},
                                                       {"IB_ROCE_VERSION_NUM", "2"},
                                                       {"IB_ADDR_FAMILY", "AF_INET"},
                                                       {"IB_ADDR_RANGE", "10.0.0.0/8"}}));
  EXPECT_EQ(set.index, 3);
  EXPECT_EQ(set.roce_version, 2);
  EXPECT_EQ(set.ipv6, false);
  EXPECT_TRUE(set.range);
}

/// The index in the address of a QP is one byte: a larger one would name another GID.
TEST(GidRequest, AnIndexHasAByte) {
  const auto problem = [](const char* index) {
    return Options({}, {{"IB_GID_INDEX", index}}).value("IB_GID_INDEX").problem;
  };
  EXPECT_EQ(problem("255"), "");
  EXPECT_NE(problem("256"), "");
}

TEST(CommonGids, BothEndsAgree) {
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    const auto some = [&] {
      std::vector<GidKind> kinds;
      for (int kind = 0; kind < gid_kinds; ++kind)
        if (random() % 2 == 0)
          kinds.push_back(static_cast<GidKind>(kind));
      std::shuffle(kinds.begin(), kinds.end(), random);
      return kinds;
    };
    const std::vector<GidKind> left = some(), right = some();
    const auto from_left = common_gids(left, right), from_right = common_gids(right, left);
    ASSERT_EQ(from_left.size(), from_right.size());
    for (std::size_t at = 0; at < from_left.size(); ++at) {
      EXPECT_EQ(from_left[at].local, from_right[at].remote);
      EXPECT_EQ(from_left[at].remote, from_right[at].local);
      EXPECT_EQ(left[from_left[at].local], right[from_left[at].remote]);
      if (at > 0) {
        EXPECT_LT(left[from_left[at - 1].local], left[from_left[at].local]);
      }
    }
  }
}

} // namespace
} // namespace shmemctl::verbs
