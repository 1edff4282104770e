// Texts of all PEs: that they arrive, and how many bytes that takes.
#include <atomic>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/counting_bootstrap.h"
#include "tests/support/thread_bootstrap.h"

namespace shmemctl {
namespace {

Deadline in_a_minute() {
  return Deadline::after(std::chrono::seconds(60));
}

/// Not the same anywhere.
std::string text_of_rank(int rank, std::size_t length) {
  std::string text(length, '\0');
  for (std::size_t i = 0; i < length; ++i)
    text[i] = static_cast<char>(static_cast<std::size_t>(rank) * 31 + i * 7 + i / 251);
  return text;
}

/// Gathers texts of these lengths; what the PE that received most has received.
std::size_t bytes_received(int n_pes, const std::function<std::size_t(int rank)>& length_of) {
  std::atomic<std::size_t> most{0};
  test::run_bootstrap_threads(n_pes, [&](Bootstrap& bootstrap) {
    test::CountingBootstrap counted(bootstrap);
    const int me = counted.rank();
    const std::vector<std::string> texts =
        allgather_text(counted, text_of_rank(me, length_of(me)), in_a_minute());
    EXPECT_EQ(texts.size(), static_cast<std::size_t>(n_pes));
    for (int rank = 0; rank < n_pes; ++rank)
      EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of_rank(rank, length_of(rank)))
          << "of rank " << rank << " at " << me;
    std::size_t known = most.load();
    while (known < counted.received_bytes() &&
           !most.compare_exchange_weak(known, counted.received_bytes())) {
    }
  });
  return most.load();
}

TEST(GatheredTexts, ArriveWhateverTheirLengthsAre) {
  for (const int n_pes : {1, 2, 5}) {
    bytes_received(n_pes, [](int) { return std::size_t{0}; });
    bytes_received(n_pes, [](int rank) { return static_cast<std::size_t>(rank); });
    bytes_received(n_pes, [](int rank) { return static_cast<std::size_t>(rank % 2) * 100000; });
    bytes_received(n_pes,
                   [](int rank) { return 1000 + static_cast<std::size_t>(rank == 0) * 200000; });
    bytes_received(n_pes, [](int rank) { return static_cast<std::size_t>(rank) * 90000; });
  }
}

/// As when one PE of each host describes it: the others' blocks are not filled up to that length.
TEST(GatheredTexts, AFewLongOnesCostTheirBytesOnce) {
  constexpr int n_pes = 16;
  constexpr std::size_t long_bytes = 400000;
  const std::size_t received =
      bytes_received(n_pes, [](int rank) { return rank % 8 == 0 ? long_bytes : 0; });
  EXPECT_LE(received, 2 * long_bytes + std::size_t{n_pes} * 64);
}

/// Texts that grow with the number of PEs: otherwise every PE would receive each PE's text.
TEST(GatheredTexts, PeZeroAloneMayGetThem) {
  constexpr int n_pes = 5;
  for (const std::size_t length : {std::size_t{0}, std::size_t{3000}, std::size_t{200000}})
    test::run_bootstrap_threads(n_pes, [length](Bootstrap& bootstrap) {
      test::CountingBootstrap counted(bootstrap);
      const int me = counted.rank();
      const std::vector<std::string> texts = gather_text(
          counted, text_of_rank(me, length + static_cast<std::size_t>(me)), in_a_minute());
      if (me != 0) {
        EXPECT_TRUE(texts.empty());
        EXPECT_LE(counted.received_bytes(), std::size_t{n_pes} * 8) << "the lengths";
        return;
      }
      ASSERT_EQ(texts.size(), std::size_t{n_pes});
      for (int rank = 0; rank < n_pes; ++rank)
        EXPECT_EQ(texts[static_cast<std::size_t>(rank)],
                  text_of_rank(rank, length + static_cast<std::size_t>(rank)));
    });
}

TEST(GatheredTexts, PeZeroGetsAFewLongOnesToo) {
  test::run_bootstrap_threads(4, [](Bootstrap& bootstrap) {
    const auto length_of = [](int rank) { return rank % 2 == 1 ? std::size_t{300000} : 10U; };
    const int me = bootstrap.rank();
    const std::vector<std::string> texts =
        gather_text(bootstrap, text_of_rank(me, length_of(me)), in_a_minute());
    EXPECT_EQ(texts.size(), me == 0 ? 4U : 0U);
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      EXPECT_EQ(texts[rank],
                text_of_rank(static_cast<int>(rank), length_of(static_cast<int>(rank))));
  });
}

TEST(GatheredTexts, ShortOnesAreGatheredWithoutBroadcasts) {
  constexpr int n_pes = 8;
  test::run_bootstrap_threads(n_pes, [](Bootstrap& bootstrap) {
    test::CountingBootstrap counted(bootstrap);
    allgather_text(counted,
                   text_of_rank(counted.rank(), 40 + static_cast<std::size_t>(counted.rank())),
                   in_a_minute());
    EXPECT_EQ(counted.calls(), 2U) << "lengths and texts";
    EXPECT_LE(counted.received_bytes(), std::size_t{n_pes} * (48 + 8));
  });
}

} // namespace
} // namespace shmemctl
