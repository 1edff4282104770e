// The only way to change the state: several threads of a PE change it at once.
#include "src/runtime/state_block.h"

#include <cstring>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>

#include "tests/support/team_world.h"
#include "tests/unit/runtime/shapes.h"

namespace shmemctl {
namespace {

using namespace test;

constexpr int turns = 2000;

bool same(const StateBlock& block, const std::vector<std::byte>& mirror) {
  return std::memcmp(mirror.data(), &block.master(), block.size_bytes()) == 0;
}

TEST(StateBlock, SlotsAreFreeAtFirst) {
  const StateBlock block = make_state(0, 3, 64);
  for (const TeamState& team : block.master().teams) {
    EXPECT_EQ(team.in_use, 0);
    EXPECT_EQ(team.my_pe, -1);
  }
}

TEST(StateBlock, AMebibyteHoldsThatOfThousandsOfPes) {
  for (const int n_pes : {1, 7, 300}) {
    const auto count = static_cast<std::size_t>(n_pes);
    const StateBlock block(place(0, std::vector<PeHost>(count)), std::vector<int>(count, -1));
    EXPECT_EQ(block.size_bytes(), StateBlock::size_bytes_for(n_pes));
  }
  EXPECT_LE(StateBlock::size_bytes_for(4096), std::size_t{1} << 20);
}

TEST(StateBlock, AChangeIsCountedAndMirrored) {
  StateBlock block = make_state(0, 3, 64);
  std::vector<std::byte> mirror(block.size_bytes());
  block.add_mirror(mirror.data());
  block.change([](State& state) { state.teams[5].n_pes = 7; });
  EXPECT_EQ(block.master().generation, 1u);
  EXPECT_TRUE(same(block, mirror));
  EXPECT_EQ(reinterpret_cast<const State*>(mirror.data())->teams[5].n_pes, 7);
}

TEST(StateBlock, AChangeThatThrowsIsNotPublished) {
  StateBlock block = make_state(0, 1, 64);
  EXPECT_THROW(block.change([](State&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(block.master().generation, 0u);
  block.change([](State&) {}); // the lock is free again
  EXPECT_EQ(block.master().generation, 1u);
}

TEST(StateBlock, RegionsBecomeDeltas) {
  StateBlock block = make_state(1, 3, 64);
  std::byte memory[48];
  block.set_region({region::heap, memory + 16, 16, {memory, memory + 16, nullptr}});
  const State& state = block.master();
  EXPECT_EQ(state.regions[region::heap].base, reinterpret_cast<std::uint64_t>(memory + 16));
  EXPECT_EQ(state.regions[region::heap].size_bytes, 16u);
  EXPECT_EQ(peers_of(&state)[0].delta_bytes[region::heap], -16);
  EXPECT_EQ(peers_of(&state)[1].delta_bytes[region::heap], 0);
  EXPECT_EQ(peers_of(&state)[2].delta_bytes[region::heap], PeerState::unreachable);
}

// A heap that grows and teams that are created and destroyed, as threads of a program may do. A
// change lost to a concurrent one is missing from the count, or torn in the mirror.
TEST(StateBlock, RegionsAndTeamsMayChangeAtOnce) {
  run_team_world(1, [](TeamPe& me) {
    const TeamId parent = *me.teams->split_strided(team_world, 0, 1, 1);
    std::vector<std::byte> mirror(me.block->size_bytes());
    me.block->add_mirror(mirror.data());
    const std::uint64_t before = me.publications();
    RegionView heap = me.rma->region(region::heap);
    const auto come_and_go = [&me](TeamId from) {
      for (int turn = 0; turn < turns; ++turn)
        me.teams->destroy(*me.teams->split_strided(from, 0, 1, 1));
    };
    std::thread first(come_and_go, team_world), second(come_and_go, parent);
    for (int turn = 0; turn < turns; ++turn) {
      heap.size_bytes = static_cast<std::size_t>(turn);
      me.block->set_region(heap);
    }
    first.join();
    second.join();
    require(me.publications() == before + 5 * turns, "every change counts");
    require(same(*me.block, mirror), "the mirror is the master");
    require(me.state->regions[region::heap].size_bytes == turns - 1, "the last region");
  });
}

} // namespace
} // namespace shmemctl
