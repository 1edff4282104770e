// Which ports of two PEs connect.
#include "transports/rc/ports.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shmemctl::rc {
namespace {

std::string text_of(const std::vector<PortPair>& pairs) {
  std::string text;
  for (const PortPair& pair : pairs)
    text += std::to_string(pair.port) + "-" + std::to_string(pair.peer_port) + " ";
  return text;
}

TEST(Ports, ThePeWithMorePortsUsesAllOfThem) {
  EXPECT_EQ(text_of(pair_ports(3, 2)), "0-0 1-1 2-0 ");
  EXPECT_EQ(text_of(pair_ports(1, 4)), "0-0 0-1 0-2 0-3 ");
  EXPECT_EQ(text_of(pair_ports(2, 2)), "0-0 1-1 ");
}

TEST(Ports, BothEndsPairTheSamePorts) {
  for (std::size_t mine = 1; mine < 6; ++mine)
    for (std::size_t theirs = 1; theirs < 6; ++theirs) {
      const std::vector<PortPair> here = pair_ports(mine, theirs), there = pair_ports(theirs, mine);
      ASSERT_EQ(here.size(), there.size());
      for (std::size_t i = 0; i < here.size(); ++i) {
        EXPECT_EQ(here[i].port, there[i].peer_port);
        EXPECT_EQ(here[i].peer_port, there[i].port);
      }
    }
}

TEST(Ports, APeWithoutPortsHasNoPaths) {
  EXPECT_TRUE(pair_ports(0, 4).empty());
  EXPECT_TRUE(pair_ports(4, 0).empty());
}

TEST(Ports, NamesAreHarmlessWhateverAPeerSends) {
  EXPECT_EQ(port_name("rxe0", 1), "rxe0:1");
  EXPECT_EQ(port_name("a\x1b[31mb", 2).find('\x1b'), std::string::npos);
}

} // namespace
} // namespace shmemctl::rc
