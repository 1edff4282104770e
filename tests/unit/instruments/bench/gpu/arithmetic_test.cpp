// What host and device compute with the same code.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/bench/atomic_values.h"
#include "kernels/bench/pattern.h"
#include "kernels/bench/work_split.h"
#include "src/instruments/bench/cases/pattern.h"
#include "src/instruments/bench/cases/transfer_buffers.h"
#include "src/instruments/bench/gpu/collective_buffers.h"
#include "src/model/moe/number_formats.h"

namespace shmemctl::bench {
namespace {

TEST(Pieces, CoverAMessageOnceAndInOrder) {
  for (const std::size_t size : {1u, 7u, 16u, 17u, 127u, 128u, 4096u, 4097u, 1u << 20, 1000003u})
    for (const std::uint64_t count : {1u, 2u, 3u, 32u, 33u, 1024u, 32768u}) {
      std::size_t at = 0;
      for (std::uint64_t index = 0; index < count; ++index) {
        const Piece piece = piece_of(size, index, count);
        ASSERT_EQ(piece.begin_bytes, at) << size << " by " << count;
        ASSERT_TRUE(piece.begin_bytes % 16 == 0 || piece.size_bytes == 0) << size;
        at += piece.size_bytes;
      }
      EXPECT_EQ(at, size) << count;
    }
}

TEST(Pieces, AreWholeCacheLinesWhereThereIsOneForEach) {
  EXPECT_EQ(piece_of(1 << 20, 1, 32).size_bytes, (1u << 20) / 32);
  EXPECT_EQ(piece_of(32 * 130, 1, 32).begin_bytes % 128, 0u);
}

TEST(Assignments, GiveEachPeersMessagesToItsCallersOnce) {
  for (const std::uint64_t callers : {1u, 2u, 5u, 7u, 32u, 100u})
    for (const std::uint64_t peers : {1u, 2u, 3u, 7u, 31u}) {
      std::map<std::uint64_t, std::vector<int>> seen; // by peer: how often each part is taken
      for (std::uint64_t caller = 0; caller < callers; ++caller) {
        const Assignment mine = assignment_of(caller, callers, peers);
        for (std::uint64_t peer = mine.first; peer < peers; peer += mine.step) {
          seen[peer].resize(mine.count);
          ++seen[peer].at(mine.index);
        }
      }
      ASSERT_EQ(seen.size(), peers) << callers << " callers";
      for (const auto& [peer, parts] : seen)
        for (const int times : parts)
          EXPECT_EQ(times, 1) << callers << " callers, peer " << peer << " of " << peers;
    }
}

TEST(Peers, AreThoseOfTheHostsRoutes) {
  for (const int n_pes : {2, 3, 8}) {
    Point point;
    point.traffic = Traffic::all_to_all;
    for (int pe = 0; pe < n_pes; ++pe) {
      const Routes routes = routes_of(point, pe, n_pes);
      for (std::size_t k = 0; k < routes.to.size(); ++k)
        EXPECT_EQ(peer_of(pe, n_pes, k, routes.to.size(), routes.to[0]), routes.to[k]);
    }
  }
}

TEST(PatternByte, IsTheByteOfTheHostsPattern) {
  std::vector<std::byte> area(256);
  fill_pattern(area.data(), area.size(), 11, 3);
  for (std::size_t at = 0; at < area.size(); ++at)
    ASSERT_EQ(pattern_byte(11, 3, at), std::to_integer<std::uint8_t>(area[at])) << at;
}

/// Replays operations on a synthetic area.
TEST(PatternSlots, ExpectWhatOperationsLeave) {
  for (const std::uint64_t operations : {0u, 1u, 2u, 3u, 7u, 200u, 700u}) {
    const TransferLayout layout(100, 1, 3, 1);
    std::vector<std::byte> source(source_bytes(layout.size_bytes));
    fill_pattern(source.data(), source.size(), 5, 1);
    std::vector<std::byte> area(layout.slots * layout.slot_bytes);
    for (std::uint64_t j = 0; j < operations; ++j)
      std::memcpy(area.data() + j % layout.slots * layout.slot_bytes,
                  source.data() + PatternSlots::source_offset_bytes(j, layout.slots),
                  layout.size_bytes);
    const PatternSlots slots{layout.slots, layout.slot_bytes, layout.size_bytes, operations, 5, 1};
    for (std::size_t at = 0; at < area.size(); ++at)
      ASSERT_EQ(slots.expected(at), std::to_integer<std::uint8_t>(area[at]))
          << operations << " operations, byte " << at;
  }
}

TEST(PatternSlots, OperationsOfASlotDifferFromTheOneBefore) {
  for (std::uint64_t j = 0; j < 300; ++j)
    for (const std::uint64_t slots : {1u, 2u, 64u})
      EXPECT_NE(PatternSlots::source_offset_bytes(j, slots),
                PatternSlots::source_offset_bytes(j + slots, slots));
}

TEST(AtomicOperands, FollowFromTheOperations) {
  for (const AtomicKernel kernel :
       {AtomicKernel::fetch, AtomicKernel::set, AtomicKernel::swap, AtomicKernel::compare_swap,
        AtomicKernel::fetch_add, AtomicKernel::add}) {
    std::uint64_t word = 0;
    for (std::uint64_t number = 0; number < 100; ++number) {
      ASSERT_EQ(word, atomic_after(kernel, number));
      const std::uint64_t operand = atomic_operand(kernel, number);
      if (kernel == AtomicKernel::fetch_add || kernel == AtomicKernel::add)
        word += operand;
      else if (kernel != AtomicKernel::fetch)
        word = operand;
    }
  }
  EXPECT_FALSE(atomic_fetches(AtomicKernel::add));
  EXPECT_TRUE(atomic_fetches(AtomicKernel::compare_swap));
}

double value_of_fp16(std::uint32_t bits) {
  const double fraction = bits & 0x3ff;
  const int exponent = static_cast<int>(bits >> 10 & 0x1f);
  const double size = exponent == 0x1f ? INFINITY
                      : exponent == 0  ? std::ldexp(fraction, -24)
                                       : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

TEST(CollectiveNumbers, SumsAreRoundedOnce) {
  constexpr std::uint64_t any_seed = 11;
  constexpr int n_pes = 3;
  for (const CollectiveNumber number : {CollectiveNumber::bf16, CollectiveNumber::fp16}) {
    const auto value_of = [&](std::uint64_t bits) {
      return number == CollectiveNumber::bf16
                 ? moe::float_of_bf16(static_cast<std::uint16_t>(bits))
                 : static_cast<float>(value_of_fp16(static_cast<std::uint32_t>(bits)));
    };
    int rounded = 0, rounded_otherwise = 0;
    for (std::uint64_t index = 0; index < 1000; ++index) {
      float exact = 0, each_time = 0;
      for (int pe = 0; pe < n_pes; ++pe) {
        const float given = value_of(source_bits(number, any_seed, pe, index));
        EXPECT_EQ(given, std::round(given));
        exact += given;
        each_time =
            value_of(number == CollectiveNumber::bf16 ? moe::bf16_of_float(each_time + given)
                                                      : fp16_of_float(each_time + given));
      }
      const float sum = value_of(sum_bits(number, any_seed, n_pes, index));
      EXPECT_NEAR(sum, exact, std::abs(exact) / (number == CollectiveNumber::bf16 ? 256 : 2048));
      rounded += sum != exact ? 1 : 0;
      rounded_otherwise += sum != each_time ? 1 : 0;
    }
    EXPECT_GT(rounded, 100);
    EXPECT_GT(rounded_otherwise, 10) << "additions in the type itself would pass";
  }
}

TEST(CollectiveNumbers, EveryHalfFloatRoundTripsAndOthersRoundToNearest) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    if ((bits & 0x7fff) > 0x7c00)
      continue; // no numbers
    ASSERT_EQ(fp16_of_float(static_cast<float>(value_of_fp16(bits))), bits);
    if ((bits & 0x7fff) >= 0x7bff)
      continue;
    const double here = value_of_fp16(bits), next = value_of_fp16(bits + 1);
    const auto between = [&](double part) {
      return fp16_of_float(static_cast<float>(here + (next - here) * part));
    };
    ASSERT_EQ(between(0.25), bits);
    ASSERT_EQ(between(0.5), bits + (bits & 1));
    ASSERT_EQ(between(0.75), bits + 1);
  }
  EXPECT_EQ(fp16_of_float(65519.0F), 0x7bff);
  EXPECT_EQ(fp16_of_float(65520.0F), 0x7c00);
  EXPECT_EQ(fp16_of_float(-1e30F), 0xfc00);
  EXPECT_EQ(fp16_of_float(std::nanf("")), 0x7fff);
}

TEST(CollectiveBuffers, PartsOfADestLieInItAndInTheirWritersSource) {
  for (const CollectiveKernel kernel : {CollectiveKernel::broadcast, CollectiveKernel::fcollect,
                                        CollectiveKernel::alltoall, CollectiveKernel::alltoallv})
    for (const int n_pes : {1, 2, 5})
      for (const std::size_t size : {1u, 8u, 1000u}) {
        const CollectiveBuffers places{kernel, size, n_pes};
        std::uint64_t given = 0, taken = 0;
        for (int pe = 0; pe < n_pes; ++pe) {
          given += places.payload_bytes(pe);
          std::size_t end = 0;
          for (const auto& part : places.parts(pe)) {
            EXPECT_GE(part.at, end);
            end = part.at + part.size_bytes;
            EXPECT_LE(end, places.dest_data_bytes());
            EXPECT_LE(part.from + part.size_bytes, places.source_data_bytes());
            taken += part.size_bytes;
          }
        }
        if (kernel == CollectiveKernel::alltoall || kernel == CollectiveKernel::alltoallv) {
          EXPECT_EQ(given, taken);
        }
        EXPECT_LE(places.dest_offset_bytes() + places.dest_bytes(), places.total_bytes());
      }
}

struct Least {
  CollectiveKernel kernel;
  std::vector<int> gpu_of_pe;
  double loaded, stored, between_gpus;
};

/// In units of the size, of all PEs together.
TEST(CollectiveBuffers, SayTheLeastThatIsMoved) {
  using Kernel = CollectiveKernel;
  const std::vector<int> each = {0, 1, 2, 3}, shared = {0, 0, 1, 1}, one = {0, 0, 0, 0};
  for (const Least& least :
       std::vector<Least>{{Kernel::broadcast, each, 1, 4, 1},
                          {Kernel::broadcast, shared, 1, 4, 1},
                          {Kernel::broadcast, one, 1, 4, 0},
                          {Kernel::fcollect, each, 4, 16, 12},
                          {Kernel::fcollect, shared, 4, 16, 4},
                          {Kernel::fcollect, one, 4, 16, 0},
                          {Kernel::alltoall, each, 16, 16, 12},
                          {Kernel::alltoall, shared, 16, 16, 8},
                          {Kernel::alltoall, one, 16, 16, 0},
                          // half between PEs whose numbers differ by an odd one
                          {Kernel::alltoallv, each, 12, 12, 8},
                          {Kernel::alltoallv, shared, 12, 12, 6},
                          {Kernel::alltoallv, one, 12, 12, 0},
                          {Kernel::reduce, each, 4, 4, 6},
                          {Kernel::reduce, shared, 4, 4, 2},
                          {Kernel::reduce, one, 4, 4, 0},
                          {Kernel::reducescatter, each, 16, 4, 12},
                          {Kernel::reducescatter, shared, 16, 4, 4},
                          {Kernel::reducescatter, one, 16, 4, 0}}) {
    const LeastTraffic said = CollectiveBuffers{least.kernel, 1000, 4}.min_traffic(least.gpu_of_pe);
    const std::string which = std::to_string(static_cast<int>(least.kernel)) + " on " +
                              std::to_string(least.gpu_of_pe.back() + 1) + " GPUs";
    EXPECT_EQ(said.loaded, 1000 * least.loaded) << which;
    EXPECT_EQ(said.stored, 1000 * least.stored) << which;
    EXPECT_EQ(said.between_gpus, 1000 * least.between_gpus) << which;
    EXPECT_EQ(said.from_root, least.kernel == Kernel::broadcast) << which;
  }
}

TEST(CollectiveBuffers, ListsSayWhatThePartsSay) {
  const int n_pes = 5;
  const CollectiveBuffers places{CollectiveKernel::alltoallv, 9, n_pes};
  for (int from = 0; from < n_pes; ++from) {
    const std::vector<std::uint64_t> lists = places.lists(from);
    ASSERT_EQ(lists.size(), 3u * n_pes);
    for (int to = 0; to < n_pes; ++to) {
      const auto part = places.parts(to).at(static_cast<std::size_t>(from));
      const auto at = static_cast<std::size_t>(to);
      EXPECT_EQ(lists[at], part.size_bytes);
      EXPECT_EQ(lists[n_pes + at], part.from);
      EXPECT_EQ(lists[2 * n_pes + at], part.at);
    }
  }
}

} // namespace
} // namespace shmemctl::bench
