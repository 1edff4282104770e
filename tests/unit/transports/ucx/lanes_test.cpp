#include "transports/ucx/lanes.h"

#include <gtest/gtest.h>

namespace shmemctl::test {
namespace {

// As UCX 1.13.1 printed it.
constexpr const char* over_tcp = R"(#
# UCP endpoint 
#
#               peer: <no debug data>
#                 lane[0]:  0:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] am am_bw#0 wireup
#
#
#                  rma_bw: mds #
)";
constexpr const char* over_memory = R"(# UCP endpoint 
#                 lane[0]:  0:sysv/memory.0 md[0]           -> md[0]/sysv/sysdev[255] amo#0 am am_bw#0
#                 lane[1]:  1:posix/memory.0 md[1]          -> md[1]/posix/sysdev[255] amo#1
#
#                  put[0]: 0..<short>..4294967296..<bcopy>..(inf)
)";
// Put together from the format of UCX 1.16's source.
constexpr const char* over_rc = R"(# UCP endpoint intra-node
#                 lane[0]: 12:rc_verbs/mlx5_0:1.0 md[10]      -> md[10]/ib/sysdev[2] seg 8256 rma_bw#0 am am_bw#0 wireup{ud_verbs/mlx5_0:1}
#                 lane[1]: 13:rc_verbs/mlx5_1:1.0 md[11]      -> md[11]/ib/sysdev[3] seg 8256 rma_bw#1
)";

TEST(UcxLanes, AreReadFromWhatUcxPrints) {
  EXPECT_EQ(parse_lanes(over_tcp), (std::vector<UcxLane>{{"tcp", "lo"}}));
  EXPECT_EQ(parse_lanes(over_memory),
            (std::vector<UcxLane>{{"sysv", "memory"}, {"posix", "memory"}}));
  EXPECT_EQ(parse_lanes(over_rc),
            (std::vector<UcxLane>{{"rc_verbs", "mlx5_0:1"}, {"rc_verbs", "mlx5_1:1"}}));
  for (const char* text : {"", "lane[", "lane[0]: -> ", "lane[0]: x -> y", "lane[0]: 0:/ -> y",
                           "lane[0]: /: -> ", "-> lane[0]: 0:tcp/lo.0"})
    EXPECT_TRUE(parse_lanes(text).empty()) << text;
}

TEST(UcxLanes, TheirPortsAreEachThereOnce) {
  EXPECT_EQ(ports_of(parse_lanes(over_rc)), (std::vector<HcaPort>{{"mlx5_0", 1}, {"mlx5_1", 1}}));
  EXPECT_EQ(ports_of({{"tcp", "eth0"}, {"posix", "memory"}, {"tcp", "eth0"}, {"rc", "mlx5_0:2"}}),
            (std::vector<HcaPort>{{"eth0", 1}, {"mlx5_0", 2}}));
  EXPECT_TRUE(ports_of(parse_lanes(over_memory)).empty());
  EXPECT_TRUE(ports_of({{"rc", "mlx5_0:x"}, {"rc", "mlx5_0:0"}, {"rc", "mlx5_0:256"}}).empty());
}

TEST(UcxLanes, AtomicsAreRead) {
  const auto of_memory =
      parse_atomics("#     atomics: 0:self/memory0, 3:sysv/memory, 4:posix/memory\n#\n");
  EXPECT_EQ(of_memory,
            (std::vector<UcxLane>{{"self", "memory0"}, {"sysv", "memory"}, {"posix", "memory"}}));
  EXPECT_TRUE(all_memory(of_memory));
  const auto of_device = parse_atomics("#     atomics: 7:rc_mlx5/mlx5_0:1\n");
  EXPECT_EQ(of_device, (std::vector<UcxLane>{{"rc_mlx5", "mlx5_0:1"}}));
  EXPECT_FALSE(all_memory(of_device));
  // By software on the target's processor.
  EXPECT_TRUE(parse_atomics("#     atomics: \n#\n").empty());
  EXPECT_TRUE(parse_atomics("nothing").empty());
  EXPECT_TRUE(all_memory({}));
}

TEST(UcxLanes, ResourcesAreRead) {
  const auto lanes = parse_resources("#     component 0  :  self\n"
                                     "#      resource 0  :  md 0  dev 0  flags -- sysv/memory\n"
                                     "#      resource 10 :  md 2  dev 1  flags a- tcp/eth0\n"
                                     "#      resource \n");
  EXPECT_EQ(lanes, (std::vector<UcxLane>{{"sysv", "memory"}, {"tcp", "eth0"}}));
  EXPECT_TRUE(some_memory(lanes));
  EXPECT_FALSE(all_memory(lanes));
  EXPECT_FALSE(some_memory({{"tcp", "eth0"}}));
  EXPECT_FALSE(some_memory({}));
}

TEST(UcxLanes, ThePortIsNamedWhereThereIsOne) {
  EXPECT_EQ(only_port(parse_lanes(over_tcp)), (HcaPort{"lo", 1}));
  EXPECT_EQ(only_port({{"rc_verbs", "mlx5_1:2"}, {"ud_verbs", "mlx5_1:2"}}),
            (HcaPort{"mlx5_1", 2}));
  EXPECT_EQ(only_port(parse_lanes(over_rc)), std::nullopt);
  EXPECT_EQ(only_port(parse_lanes(over_memory)), std::nullopt);
  EXPECT_EQ(only_port({}), std::nullopt);
  EXPECT_EQ(only_port({{"rc_verbs", "mlx5_1:x"}}), std::nullopt);
  EXPECT_EQ(only_port({{"rc_verbs", "mlx5_1:0"}}), std::nullopt);
}

TEST(UcxLanes, TextNamesEachOnce) {
  EXPECT_EQ(to_text(parse_lanes(over_rc)), "rc_verbs/mlx5_0:1, rc_verbs/mlx5_1:1");
  EXPECT_EQ(to_text({{"tcp", "lo"}, {"tcp", "lo"}}), "tcp/lo");
  EXPECT_EQ(to_text({}), "");
}

} // namespace
} // namespace shmemctl::test
