#include <gtest/gtest.h>

#include "src/model/topo/readers/sysfs.h"

namespace shmemctl {
namespace {

TEST(SysfsValues, PortStateByItsNumber) {
  EXPECT_EQ(parse_port_state("1: DOWN"), PortState::down);
  EXPECT_EQ(parse_port_state("2: INIT"), PortState::init);
  EXPECT_EQ(parse_port_state("3: ARMED"), PortState::armed);
  EXPECT_EQ(parse_port_state("4: ACTIVE\n"), PortState::active);
  EXPECT_EQ(parse_port_state("5: ACTIVE_DEFER"), PortState::active);
  for (const char* none : {"", ":", "0: NOP", "6: ?", "ACTIVE", "4", "-1: DOWN", "4x: ACTIVE"})
    EXPECT_FALSE(parse_port_state(none)) << none;
}

TEST(SysfsValues, LinkLayer) {
  EXPECT_EQ(parse_link_layer("InfiniBand"), LinkLayer::infiniband);
  EXPECT_EQ(parse_link_layer("Ethernet\n"), LinkLayer::ethernet);
  EXPECT_EQ(parse_link_layer("Unknown"), LinkLayer::other); // EFA: neither of the two
  EXPECT_EQ(parse_link_layer("Unspecified"), LinkLayer::other);
  EXPECT_FALSE(parse_link_layer(""));
  EXPECT_FALSE(parse_link_layer("Omnipath?"));
}

TEST(SysfsValues, Rate) {
  EXPECT_EQ(parse_rate_Gbps("400 Gb/sec (4X NDR)"), 400.0);
  EXPECT_EQ(parse_rate_Gbps("2.5 Gb/sec (1X SDR)\n"), 2.5);
  EXPECT_EQ(parse_rate_Gbps("800 Gb/sec (8X XDR)"), 800.0);
  for (const char* none : {"", "0 Gb/sec (4X)", "-5 Gb/sec", "400", "400 Mb/sec", "nan Gb/sec",
                           "inf Gb/sec", "1e300 Gb/sec", "x Gb/sec"})
    EXPECT_FALSE(parse_rate_Gbps(none)) << none;
}

TEST(SysfsValues, Lid) {
  EXPECT_EQ(parse_lid("0x1a"), 26);
  EXPECT_EQ(parse_lid("0"), 0);
  EXPECT_EQ(parse_lid("65535"), 65535);
  for (const char* none : {"", "0x10000", "-1", "lid", "0x"})
    EXPECT_FALSE(parse_lid(none)) << none;
}

TEST(SysfsValues, Gid) {
  EXPECT_EQ(parse_gid("FE80:0000:0000:0000:0011:2233:4455:6677\n"),
            "fe80:0000:0000:0000:0011:2233:4455:6677");
  for (const char* none :
       {"", "fe80::1", "fe80:0000:0000:0000:0011:2233:4455:667g",
        "fe800:000:0000:0000:0011:2233:4455:6677", "fe80:0000:0000:0000:0011:2233:4455:6677:0000"})
    EXPECT_FALSE(parse_gid(none)) << none;
  EXPECT_TRUE(is_zero_gid("0000:0000:0000:0000:0000:0000:0000:0000"));
  EXPECT_FALSE(is_zero_gid("fe80:0000:0000:0000:0000:0000:0000:0000"));
}

TEST(SysfsValues, LinkWidth) {
  EXPECT_EQ(parse_link_width("16"), 16);
  EXPECT_EQ(parse_link_width("1\n"), 1);
  for (const char* none : {"", "0", "255", "33", "-1", "x16"})
    EXPECT_FALSE(parse_link_width(none)) << none;
}

TEST(SysfsValues, MemoryTotal) {
  EXPECT_EQ(parse_memory_total_bytes("Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB\n"),
            1048576U);
  EXPECT_EQ(parse_memory_total_bytes("MemTotal: 0 kB"), 0U);
  for (const char* none : {"", "MemTotal:", "MemTotal: 5", "MemTotal: 5 MB", "MemTotal: -5 kB",
                           "MemTotal: 99999999999999999 kB"})
    EXPECT_FALSE(parse_memory_total_bytes(none)) << none;
}

TEST(SysfsValues, Fields) {
  const std::string text = "Model: \t\t NVIDIA H100: 80GB\nGPU UUID: \t GPU-1\nEmpty:\n";
  EXPECT_EQ(parse_field(text, "Model"), "NVIDIA H100: 80GB");
  EXPECT_EQ(parse_field(text, "GPU UUID"), "GPU-1");
  EXPECT_EQ(parse_field(text, "Empty"), "");
  EXPECT_FALSE(parse_field(text, "Mod"));
}

} // namespace
} // namespace shmemctl
