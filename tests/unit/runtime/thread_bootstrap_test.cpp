// The tests' own bootstrap satisfies the contract of Bootstrap.
#include "tests/support/thread_bootstrap.h"

#include <gtest/gtest.h>

#include "tests/support/failure_detector_world.h"

namespace shmemctl {
namespace {

using namespace test;

std::vector<std::uint8_t> pattern(int from, int to, std::size_t size_bytes) {
  std::vector<std::uint8_t> bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i)
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(from * 31 + to * 7) + i);
  return bytes;
}

TEST(ThreadBootstrap, CollectivesOfManySizes) {
  for (const int n_pes : {1, 2, 5})
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000},
                                   BootstrapArea::slot_bytes, std::size_t{150001}})
      run_bootstrap_threads(n_pes, [&](Bootstrap& bootstrap) {
        const auto count = static_cast<std::size_t>(n_pes);
        const int me = bootstrap.rank();
        std::vector<std::uint8_t> gathered(count * size), sent, received(count * size), expected,
            transposed;
        for (int pe = 0; pe < n_pes; ++pe) {
          const auto whole = pattern(pe, 0, size), out = pattern(me, pe, size),
                     in = pattern(pe, me, size);
          expected.insert(expected.end(), whole.begin(), whole.end());
          sent.insert(sent.end(), out.begin(), out.end());
          transposed.insert(transposed.end(), in.begin(), in.end());
        }
        bootstrap.allgather(pattern(me, 0, size).data(), gathered.data(), size, in_seconds(60));
        EXPECT_EQ(gathered, expected);
        bootstrap.alltoall(sent.data(), received.data(), size, in_seconds(60));
        EXPECT_EQ(received, transposed);
        auto data = me == n_pes - 1 ? pattern(9, 9, size) : std::vector<std::uint8_t>(size);
        bootstrap.broadcast(data.data(), size, n_pes - 1, in_seconds(60));
        EXPECT_EQ(data, pattern(9, 9, size));
        bootstrap.finish(in_seconds(60));
      });
}

TEST(ThreadBootstrap, ATimeoutNamesTheMissingPe) {
  try {
    run_bootstrap_threads(4, [&](Bootstrap& bootstrap) {
      if (bootstrap.rank() != 2)
        bootstrap.barrier(in_seconds(0.05));
    });
    FAIL() << "nobody was missed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::deadline);
    EXPECT_NE(error.message().find("PE 2"), std::string::npos) << error.message();
  }
}

TEST(ThreadBootstrap, AnAbortEndsTheWaits) {
  try {
    run_bootstrap_threads(3, [&](Bootstrap& bootstrap) {
      if (bootstrap.rank() == 1)
        throw Error(ExitCode::usage, "it", "do", "no", "replace it");
      bootstrap.barrier(in_seconds(60));
    });
    FAIL() << "the error was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

TEST(ThreadBootstrap, AFailureOfTheJobEndsTheWaits) {
  FailureDetectors lifelines = make_failure_detectors(3);
  lifelines[1]->announce(Error(ExitCode::finding, "it", "do", "no", "replace it"), "heap");
  run_bootstrap_threads(3, [&](Bootstrap& bootstrap) {
    if (bootstrap.rank() == 1)
      return;
    bootstrap.watch(lifelines[static_cast<std::size_t>(bootstrap.rank())].get());
    try {
      bootstrap.barrier(in_seconds(60));
      ADD_FAILURE() << "the barrier ended";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::finding);
    }
  });
}

} // namespace
} // namespace shmemctl
