// The intranode transport: copies, CPU atomics, signals.
#include "transports/shm/shm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "src/base/error.h"

using namespace shmemctl;

namespace {

std::vector<std::byte> random_bytes(std::size_t size_bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size_bytes + 8);
  for (std::size_t at = 0; at < size_bytes; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  bytes.resize(size_bytes);
  return bytes;
}

/// Two PEs' memory in one process.
struct Pair {
  alignas(64) std::byte memory[2][4096] = {};
  std::unique_ptr<Transport> transport = make_shm_transport();
  Pair() { transport->set_region({1, memory[0], sizeof memory[0], {memory[0], memory[1]}}); }
};

AtomicRequest request(AtomicOp op, std::uint8_t size_bytes, std::uint64_t operand,
                      std::uint64_t compare = 0) {
  return {op, size_bytes, operand, compare};
}

std::uint64_t after(AtomicOp op, std::uint64_t old, std::uint64_t operand, std::uint64_t compare) {
  switch (op) {
  case AtomicOp::fetch:
    return old;
  case AtomicOp::set:
  case AtomicOp::swap:
    return operand;
  case AtomicOp::compare_swap:
    return old == compare ? operand : old;
  case AtomicOp::add:
    return old + operand;
  case AtomicOp::bit_and:
    return old & operand;
  case AtomicOp::bit_or:
    return old | operand;
  case AtomicOp::bit_xor:
    return old ^ operand;
  }
  return 0;
}

constexpr AtomicOp every_op[] = {AtomicOp::fetch,   AtomicOp::set,         AtomicOp::swap,
                                 AtomicOp::add,     AtomicOp::bit_and,     AtomicOp::bit_or,
                                 AtomicOp::bit_xor, AtomicOp::compare_swap};

} // namespace

TEST(CopyToShared, EverySizeAndAlignment) {
  const auto source = random_bytes(600, 1);
  for (std::size_t size = 0; size < 300; ++size)
    for (std::size_t shift : {0, 1, 2, 3, 4, 7, 8, 63}) {
      std::vector<std::byte> target(500, std::byte{0xee});
      copy_to_shared(target.data() + shift, source.data() + shift / 2, size);
      EXPECT_EQ(std::memcmp(target.data() + shift, source.data() + shift / 2, size), 0) << size;
      for (std::size_t i = 0; i < target.size(); ++i)
        if (i < shift || i >= shift + size) {
          ASSERT_EQ(target[i], std::byte{0xee}) << size << " bytes at " << shift << ": " << i;
        }
    }
}

TEST(CopyToShared, AroundTheThresholdOfNonTemporalStores) {
  constexpr std::size_t most = (std::size_t{32} << 20) + 128;
  const auto source = random_bytes(most + 64, 2);
  std::vector<std::byte> target(most + 256);
  constexpr std::size_t mib = std::size_t{1} << 20; // the threshold is 1 to 32 MiB
  for (const std::size_t size : {mib - 1, 4 * mib, 8 * mib + 1, 16 * mib - 1, 16 * mib, most})
    for (const std::size_t shift : {0, 1, 64, 65}) {
      std::fill(target.begin(), target.end(), std::byte{0xee});
      copy_to_shared(target.data() + shift, source.data() + shift % 3, size);
      ASSERT_EQ(std::memcmp(target.data() + shift, source.data() + shift % 3, size), 0) << size;
      ASSERT_EQ(target[shift + size], std::byte{0xee}) << size;
      if (shift > 0) {
        ASSERT_EQ(target[shift - 1], std::byte{0xee}) << size;
      }
    }
}

TEST(CopyToShared, OntoItself) {
  auto bytes = random_bytes(5000, 3);
  const auto before = bytes;
  copy_to_shared(bytes.data(), bytes.data(), bytes.size());
  EXPECT_EQ(bytes, before);
}

TEST(ExecuteAtomic, EveryOperationInBothSizes) {
  std::mt19937_64 random(4);
  for (const AtomicOp op : every_op)
    for (int turn = 0; turn < 200; ++turn) {
      const std::uint64_t old = random(), operand = random();
      const std::uint64_t compare = turn % 2 == 0 ? old : random();
      std::uint64_t word = old;
      std::uint64_t result = execute_atomic(&word, request(op, 8, operand, compare));
      EXPECT_EQ(word, after(op, old, operand, compare));
      EXPECT_EQ(result, op == AtomicOp::set ? 0 : old);

      const auto low = [](std::uint64_t value) { return value & 0xffffffffu; };
      std::uint32_t words[3] = {7, static_cast<std::uint32_t>(old), 9};
      result = execute_atomic(&words[1], request(op, 4, operand, compare));
      EXPECT_EQ(words[1], low(after(op, low(old), low(operand), low(compare))));
      EXPECT_EQ(result, op == AtomicOp::set ? 0 : low(old));
      EXPECT_EQ(words[0], 7u);
      EXPECT_EQ(words[2], 9u);
    }
}

TEST(ExecuteAtomic, NothingIsLostBetweenThreads) {
  constexpr int n_threads = 4, turns = 100000;
  std::uint64_t counter = 0, bits = 0, locked = 0;
  std::uint32_t narrow = 0, lock = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < n_threads; ++thread)
    threads.emplace_back([&, thread] {
      for (int turn = 0; turn < turns; ++turn) {
        execute_atomic(&counter, request(AtomicOp::add, 8, 3));
        execute_atomic(&narrow, request(AtomicOp::add, 4, 0xffffffff));
        execute_atomic(&bits, request(AtomicOp::bit_xor, 8, std::uint64_t{1} << thread));
        while (execute_atomic(&lock, request(AtomicOp::compare_swap, 4, 1, 0)) != 0)
          std::this_thread::yield();
        ++locked; // a plain word: the lock must order it
        execute_atomic(&lock, request(AtomicOp::set, 4, 0));
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(counter, 3u * n_threads * turns);
  EXPECT_EQ(narrow, static_cast<std::uint32_t>(-n_threads * turns));
  EXPECT_EQ(bits, 0u);
  EXPECT_EQ(locked, static_cast<std::uint64_t>(n_threads) * turns);
}

TEST(Shm, ReachesItsOwnNodeOnly) {
  const auto transport = make_shm_transport();
  const PeerLocation me{0, 10, 100, {}};
  EXPECT_STREQ(transport->name(), "shm");
  EXPECT_TRUE(transport->local_info().empty());
  const Reach near = transport->reach(me, {1, 10, 100, {}});
  EXPECT_EQ(near.capabilities,
            unsigned{can_load_store | can_put | can_get | can_atomics | can_put_signal});
  EXPECT_EQ(transport->reach(me, {1, 11, 100, {}}).capabilities, 0u);
  EXPECT_NE(transport->reach(me, {1, 11, 100, {}}).reason.find("virtual node"), std::string::npos);
  EXPECT_EQ(transport->reach(me, {1, 10, 101, {}}).capabilities, 0u);
  EXPECT_NE(transport->reach(me, {1, 10, 101, {}}).reason.find("machine"), std::string::npos);
}

TEST(Shm, PutGetAtomicAndSignalGoToThePeer) {
  Pair pair;
  const auto source = random_bytes(1000, 5);
  pair.transport->put(0, {1, 1, 8}, source.data(), source.size(), true);
  EXPECT_EQ(std::memcmp(pair.memory[1] + 8, source.data(), source.size()), 0);
  EXPECT_EQ(pair.memory[0][8], std::byte{0});
  std::vector<std::byte> back(1000);
  pair.transport->get(0, back.data(), {1, 1, 8}, back.size(), true);
  EXPECT_EQ(back, source);
  EXPECT_EQ(pair.transport->atomic(0, {1, 1, 2048}, request(AtomicOp::add, 8, 5)), 0u);
  EXPECT_EQ(pair.transport->atomic(0, {1, 1, 2048}, request(AtomicOp::add, 8, 5)), 5u);
  pair.transport->put_signal(0, {1, 1, 3000}, source.data(), 7, {1, 1, 2048}, 40, SignalOp::add,
                             true);
  EXPECT_EQ(std::memcmp(pair.memory[1] + 3000, source.data(), 7), 0);
  EXPECT_EQ(pair.transport->atomic(0, {1, 1, 2048}, request(AtomicOp::fetch, 8, 0)), 50u);
  pair.transport->put_signal(0, {1, 1, 0}, nullptr, 0, {1, 1, 2048}, 3, SignalOp::set, true);
  EXPECT_EQ(pair.transport->atomic(0, {1, 1, 2048}, request(AtomicOp::fetch, 8, 0)), 3u);
}

TEST(Shm, MemoryThatIsNotMappedIsAnError) {
  Pair pair;
  std::uint64_t word = 0;
  for (const RemoteAddress& address :
       {RemoteAddress{2, 1, 0}, RemoteAddress{-1, 1, 0}, RemoteAddress{0, 0, 0},
        RemoteAddress{0, 2, 0}, RemoteAddress{0, -1, 0}}) {
    EXPECT_THROW(pair.transport->put(0, address, &word, 8, true), Error);
    EXPECT_THROW(pair.transport->get(0, &word, address, 8, true), Error);
    EXPECT_THROW(pair.transport->atomic(0, address, request(AtomicOp::fetch, 8, 0)), Error);
    EXPECT_THROW(
        pair.transport->put_signal(0, {0, 1, 0}, &word, 8, address, 1, SignalOp::set, true), Error);
  }
}

TEST(Shm, ARegionThatHasMovedIsFollowed) {
  Pair pair;
  alignas(64) std::byte elsewhere[64] = {};
  const std::uint64_t word = 0x0102030405060708;
  pair.transport->set_region({1, pair.memory[0], 4096, {pair.memory[0], elsewhere}});
  pair.transport->put(0, {1, 1, 16}, &word, 8, true);
  EXPECT_EQ(std::memcmp(elsewhere + 16, &word, 8), 0);
  EXPECT_EQ(pair.memory[1][16], std::byte{0});
}
