// The device API over NVLink or PCIe: bytes, orders, barriers, waits that end.
#include <csignal>
#include <gtest/gtest.h>

#include "tests/gpu/device_kernels.h"
#include "tests/gpu/device_world.h"
#include "tests/gpu/share.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t heap_bytes = std::size_t{8} << 20;
constexpr std::size_t half = heap_bytes / 2;

/// A PE for each GPU, at most that many, but two at least: kernels that wait for each other on one
/// GPU take turns by time slices. Fails with what the PEs said; skips where there is no GPU.
void run(int max_pes, const std::function<void(GpuPe&)>& body) {
  const int gpus = count_gpus();
  if (gpus == 0)
    GTEST_SKIP() << "no GPU";
  const int n_pes = std::max(2, std::min(max_pes, gpus));
  const std::string problem = run_gpu_pes(n_pes, heap_bytes, body);
  EXPECT_EQ(problem, "");
}

std::vector<std::uint8_t> pattern(std::size_t size_bytes, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i)
    bytes[i] = static_cast<std::uint8_t>((i + seed) * 0x9e3779b97f4a7c15u >> 32);
  return bytes;
}

struct Transfer {
  std::size_t to, from, size;
};
std::vector<Transfer> transfers() {
  if (is_reduced())
    return {{0, 0, 1},  {1, 3, 2},   {8, 0, 8},    {4, 8, 15},   {0, 16, 16},
            {1, 0, 17}, {8, 16, 64}, {0, 3, 1000}, {8, 0, 4096}, {5, 5, 8195}};
  std::vector<Transfer> all;
  for (const std::size_t size : {1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 255, 1000, 4096, 65537})
    for (const std::size_t to : {0, 1, 4, 8})
      for (const std::size_t from : {0, 3, 8, 16})
        all.push_back({to, from, size});
  all.push_back({0, 0, 1 << 20});
  all.push_back({5, 5, (1 << 20) + 3});
  return all;
}

/// Every size and alignment, all bytes around included, in both directions.
void move_and_compare(GpuPe& me, Who who, Shape shape) {
  constexpr std::size_t border = 64;
  const int peer = (me.job.pe + 1) % me.job.n_pes;
  const int before = (me.job.pe + me.job.n_pes - 1) % me.job.n_pes;
  std::uint64_t seed = 1;
  for (const Transfer& transfer : transfers()) {
    const auto mine = pattern(transfer.size, seed + static_cast<std::uint64_t>(me.job.pe));
    std::vector<std::uint8_t> untouched(transfer.size + 2 * border, 0xee);
    for (const bool is_put : {true, false}) {
      me.store(half + border + transfer.from, mine);
      me.store(transfer.to, untouched);
      me.barrier();
      const std::size_t to = transfer.to + border, from = half + border + transfer.from;
      if (is_put)
        launch_put(me.job, who, shape, to, from, transfer.size, peer);
      else
        launch_get(me.job, who, shape, to, from, transfer.size, peer);
      me.synchronize();
      me.barrier();
      std::vector<std::uint8_t> expected = untouched;
      const auto theirs =
          pattern(transfer.size, seed + static_cast<std::uint64_t>(is_put ? before : peer));
      std::copy(theirs.begin(), theirs.end(), expected.begin() + border);
      require(me.load(transfer.to, expected.size()) == expected,
              (is_put ? "put of " : "get of ") + std::to_string(transfer.size) + " bytes, " +
                  std::to_string(transfer.to) + " <- " + std::to_string(transfer.from));
      me.barrier();
    }
    seed += 1000;
  }
}

TEST(Device, PutsAndGetsOfAThread) {
  run(2, [](GpuPe& me) { move_and_compare(me, Who::thread, {1, 1}); });
}
TEST(Device, PutsAndGetsOfAWarp) {
  run(2, [](GpuPe& me) { move_and_compare(me, Who::warp, {1, 32}); });
}
TEST(Device, PutsAndGetsOfBlocks) {
  run(4, [](GpuPe& me) { move_and_compare(me, Who::block, {4, 256}); });
}

/// Data before signal, by each means, a million times in all.
TEST(Device, DataIsThereWhenItsSignalIs) {
  struct Case {
    Who who;
    int threads;
    std::size_t data, signal, size; ///< offsets; bytes
    int rounds;
    Order order;
  };
  // The target lies `size` behind the data.
  const std::vector<Case> cases = {
      {Who::thread, 1, 0, half, 8, 200000, Order::put_signal},
      {Who::thread, 1, 8, 24, 8, 200000, Order::put_signal}, // data and signal in 16 bytes
      {Who::warp, 32, 8, 24, 8, 100000, Order::put_signal},
      {Who::warp, 32, 0, half, 1024, 200000, Order::put_signal},
      {Who::block, 512, 0, half, 16384, 100000, Order::put_signal},
      {Who::warp, 32, 0, half, 1024, 100000, Order::fence},
      {Who::block, 256, 0, half, 8192, 50000, Order::fence},
      {Who::block, 256, 0, half, 8192, 50000, Order::quiet}};
  const int share = pes_take_turns() ? 1000 : 1;
  run(2, [&](GpuPe& me) {
    for (const Case& one : cases) {
      DeviceArray<std::uint64_t> wrong(1);
      me.store(0, std::vector<std::uint8_t>(64, 0));
      me.store(half, std::vector<std::uint8_t>(64, 0));
      me.barrier();
      launch_ping_pong(me.job, one.who, one.threads, one.data, one.signal, one.size, 0,
                       static_cast<std::uint64_t>(share_of(one.rounds / share)), wrong.data(),
                       one.order);
      me.synchronize();
      require(wrong.values()[0] == 0, std::to_string(wrong.values()[0]) +
                                          " words were late: " + std::to_string(one.size) +
                                          " bytes by " + std::to_string(one.threads) + " threads");
      me.barrier();
    }
  });
}

TEST(Device, BarriersHoldEverybody) {
  const auto count_of_rounds = share_of(std::uint64_t{pes_take_turns() ? 50u : 5000u});
  run(4, [&](GpuPe& me) {
    for (const auto& [who, threads] :
         {std::pair{Who::thread, 1}, std::pair{Who::warp, 32}, std::pair{Who::block, 128}}) {
      DeviceArray<std::uint64_t> wrong(1);
      me.store(0, std::vector<std::uint8_t>(64, 0));
      me.barrier();
      launch_barriers(me.job, who, threads, 0, count_of_rounds, wrong.data());
      me.synchronize();
      require(wrong.values()[0] == 0, std::to_string(wrong.values()[0]) + " words were missing");
      me.barrier();
    }
  });
}

TEST(Device, AWaitEndsAndNamesThePeer) {
  if (count_gpus() == 0)
    GTEST_SKIP() << "no GPU";
  const std::string said = run_gpu_pes(
      2, heap_bytes,
      [](GpuPe& me) {
        DeviceArray<std::uint64_t> wrong(1);
        if (me.job.pe == 0) // alone: PE 1 never answers
          launch_ping_pong(me.job, Who::block, 64, 0, half, 64, 0, 10, wrong.data());
        me.synchronize();
      },
      0.5);
  EXPECT_NE(said.find("PE 0 waited for PE 1: expected 1, saw 0"), std::string::npos) << said;
}

/// A PE that is killed does not keep the others: their waits end, and name it.
TEST(Device, AKilledPeIsNamed) {
  if (count_gpus() == 0)
    GTEST_SKIP() << "no GPU";
  const std::string said = run_gpu_pes(
      2, heap_bytes,
      [](GpuPe& me) {
        launch_bare_barriers(me.job, Who::block, 64, 3); // all PEs have arrived
        me.synchronize();
        me.barrier();
        if (me.job.pe == 1)
          ::raise(SIGKILL);
        launch_bare_barriers(me.job, Who::block, 64, 1000000);
        me.synchronize();
      },
      1);
  EXPECT_NE(said.find("PE 0 waited for PE 1: expected 4, saw 3"), std::string::npos) << said;
  EXPECT_NE(said.find("signal 9"), std::string::npos) << said;
}

} // namespace
} // namespace shmemctl::test
