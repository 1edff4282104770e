// The executor over a transport does the same as the one over mapped memory, in order.
#include <gtest/gtest.h>
#include <random>

#include "tests/support/no_transport.h"
#include "tests/unit/transports/mlx5/emulated_hca_world.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {
namespace {

KeyWindow window_of(std::vector<std::uint64_t>& memory, std::uint64_t address) {
  KeyWindow window;
  window.key = EmulatedWorld::rkey;
  window.address = address;
  window.size_bytes = memory.size() * 8;
  window.access = access_all;
  window.mapped = reinterpret_cast<std::byte*>(memory.data());
  window.region = 1;
  window.region_offset_bytes = 0;
  return window;
}

TEST(Mlx5Executors, BothExecutorsDoTheSame) {
  constexpr std::size_t words = 64;
  std::vector<std::uint64_t> mapped_memory(words), region_memory(words + 8);
  const std::uint64_t address = 0x7000'0000'0000;
  MappedExecutor mapped;
  mapped.add(window_of(mapped_memory, address));
  const std::unique_ptr<Transport> shm = make_shm_transport();
  RegionView region;
  region.region = 1;
  region.base = reinterpret_cast<std::byte*>(region_memory.data());
  region.size_bytes = region_memory.size() * 8;
  region.mapped = {nullptr, nullptr, region.base};
  shm->set_region(region);
  TransportExecutor over_transport(*shm, 5, 2);
  KeyWindow window = window_of(mapped_memory, address);
  window.mapped = nullptr;
  window.region_offset_bytes = 64; // the peer's memory begins inside of its region
  over_transport.add(window);

  std::mt19937_64 random(3);
  const auto masks = [&] {
    const std::uint64_t choices[] = {0, ~0ull, random(), 0x8000000080000000};
    return choices[random() % 4];
  };
  std::uint64_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::array<std::uint64_t, 4> data{random(), random(), random(), random()}, back[2]{};
    const bool wrong_key = random() % 50 == 0;
    RaddrSegment remote{address + random() % (words * 8),
                        wrong_key ? EmulatedWorld::rkey + 1 : EmulatedWorld::rkey};
    Outcome one, other;
    std::uint64_t old[2] = {};
    switch (random() % 3) {
    case 0: {
      const std::size_t first = 1 + random() % 16, second = random() % 16;
      auto* bytes = reinterpret_cast<std::byte*>(data.data());
      const BytePiece pieces[] = {{bytes, first}, {bytes + 16, second}};
      const std::span<const BytePiece> list(pieces, second == 0 ? 1 : 2);
      one = mapped.write(remote, list, first + second);
      other = over_transport.write(remote, list, first + second);
      break;
    }
    case 1: {
      const std::size_t size = 1 + random() % 32;
      const BytePiece mine{reinterpret_cast<std::byte*>(back[0].data()), size};
      const BytePiece theirs{reinterpret_cast<std::byte*>(back[1].data()), size};
      one = mapped.read(remote, {&mine, 1}, size);
      other = over_transport.read(remote, {&theirs, 1}, size);
      break;
    }
    default: {
      const std::uint8_t size = random() % 2 == 0 ? 4 : 8;
      remote.address -= remote.address % size;
      const Opcode opcodes[] = {Opcode::atomic_masked_cs, Opcode::atomic_masked_fa,
                                Opcode::atomic_cs, Opcode::atomic_fa};
      AtomicFields fields{
          opcodes[random() % (size == 4 ? 2 : 4)], size, masks(), masks(), masks(), masks()};
      one = mapped.atomic(remote, fields, old[0]);
      other = over_transport.atomic(remote, fields, old[1]);
      break;
    }
    }
    ASSERT_EQ(one.syndrome, other.syndrome);
    ASSERT_EQ(one.cause, other.cause);
    ASSERT_EQ(old[0], old[1]);
    ASSERT_EQ(back[0], back[1]);
    refused += one ? 1 : 0;
    ASSERT_TRUE(std::equal(mapped_memory.begin(), mapped_memory.end(), region_memory.begin() + 8))
        << "round " << round;
    for (std::size_t i = 0; i < 8; ++i)
      ASSERT_EQ(region_memory[i], 0u);
  }
  EXPECT_GT(refused, 100u);
}

/// Notes the calls.
class NotingTransport final : public NoTransport {
public:
  std::string calls;
  const char* name() const override { return "noting"; }
  void put(int context, const RemoteAddress& target, const void*, std::size_t size_bytes,
           bool blocking) override {
    calls += "put" + std::to_string(size_bytes) + (blocking ? "b" : "") + "@" +
             std::to_string(target.pe) + ":" + std::to_string(target.region) + ":" +
             std::to_string(target.offset_bytes) + "/" + std::to_string(context) + " ";
  }
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override { calls += "get "; }
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest& request) override {
    calls += "atomic" + std::to_string(static_cast<int>(request.op)) + " ";
    return 0;
  }
  void fence(int) override { calls += "fence "; }
  void quiet(int) override { calls += "quiet "; }
};

TEST(Mlx5Executors, AQueueOrdersMoreThanATransport) {
  NotingTransport transport;
  TransportExecutor executor(transport, 4, 7);
  KeyWindow window;
  window.key = 1;
  window.address = 1000;
  window.size_bytes = 1000;
  window.access = access_all;
  window.region = 2;
  window.region_offset_bytes = 100;
  executor.add(window);
  std::byte bytes[8];
  const BytePiece piece{bytes, 8};
  const auto calls = [&] { return std::exchange(transport.calls, {}); };
  EXPECT_FALSE(executor.write({1008, 1}, {&piece, 1}, 8));
  EXPECT_EQ(calls(), "put8b@7:2:108/4 ");
  EXPECT_FALSE(executor.write({1016, 1}, {&piece, 1}, 8));
  EXPECT_EQ(calls(), "fence put8b@7:2:116/4 ");
  std::uint64_t old = 0;
  EXPECT_FALSE(executor.atomic({1016, 1}, atomic_swap(8, 1), old));
  EXPECT_EQ(calls(), "fence atomic2 ");
  EXPECT_FALSE(executor.read({1016, 1}, {&piece, 1}, 8));
  EXPECT_EQ(calls(), "quiet get ");
  EXPECT_FALSE(executor.read({1016, 1}, {&piece, 1}, 8));
  EXPECT_EQ(calls(), "get ");
  EXPECT_FALSE(executor.finish());
  EXPECT_EQ(calls(), "") << "nothing was written since";
  EXPECT_FALSE(executor.write({1016, 1}, {&piece, 1}, 8));
  EXPECT_FALSE(executor.finish());
  EXPECT_EQ(calls(), "put8b@7:2:116/4 quiet ");
  EXPECT_TRUE(executor.write({999, 1}, {&piece, 1}, 8));
  EXPECT_EQ(calls(), "") << "a refused operation makes no call";
}

TEST(Mlx5Executors, AWindowThatIsNotMapped) {
  MappedExecutor mapped;
  EXPECT_THROW(mapped.add({}), Error);
}

} // namespace
} // namespace shmemctl::test
