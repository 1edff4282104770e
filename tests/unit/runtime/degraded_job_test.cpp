// Barriers and gathers of the remaining PEs, on threads.
#include <array>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "src/runtime/degraded_job.h"
#include "tests/support/failure_detector_world.h"
#include "tests/support/thread_world.h"

namespace shmemctl {
namespace {

using namespace test;

constexpr std::size_t heap_bytes = std::size_t{1} << 18;
constexpr double timeout_s = 12; ///< PE 0 waits half of this time for a PE that answers

/// What the failure detectors would report of the others, and which PEs the others have excluded.
struct Lives {
  std::array<std::atomic<Presence>, 8> presence{};
  std::array<std::atomic<bool>, 8> aside{};
};

DegradedJob survivors_of(ThreadPe& me, Lives& lives) {
  return DegradedJob(*me.rma,
                     {[&lives](int pe, double) -> Presence {
                        return lives.presence[static_cast<std::size_t>(pe)];
                      },
                      [&lives, pe = me.pe] { lives.aside[static_cast<std::size_t>(pe)] = true; }},
                     me.heap);
}

/// The lengths come from another process: reads must stay within the received bytes.
TEST(DegradedJob, GatheredTextsAreReadWithinTheirLength) {
  const auto number = [](std::uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(split_gathered(number(1) + number(0) + number(2) + "abc", 3), (Texts{"a", "", "bc"}));
  const std::vector<std::string> wrong = {"",
                                          number(1),
                                          number(1) + "a",
                                          number(1) + number(5) + "abc",
                                          number(~std::uint64_t{0}) + number(1) + "a",
                                          number(1) + number(1) + "abc"};
  for (const std::string& text : wrong)
    EXPECT_THROW(split_gathered(text, 2), Error) << text.size();
}

std::string text_of(int pe, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i)
    text += static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(pe)) % 26);
  return text;
}

TEST(DegradedJob, SurvivorsPassBarriersAndGather) {
  for (const int n : {1, 2, 5}) {
    Lives lives;
    std::atomic<int> come{0};
    run_thread_world(n, heap_bytes, [&](ThreadPe& me) {
      DegradedJob degraded = survivors_of(me, lives);
      for (int i = 1; i <= 200; ++i) {
        ++come;
        degraded.barrier("a test");
        EXPECT_GE(come, i * n);
        degraded.barrier("a test");
      }
      // Texts of several chunks, of exactly one, of none; repeatedly in the same memory.
      for (const std::size_t size : {std::size_t{0}, DegradedJob::chunk_bytes * 3 + 5,
                                     DegradedJob::chunk_bytes, std::size_t{11}}) {
        const auto size_of = [&](int pe) { return pe % 2 == 0 ? size : size / 2; };
        const std::vector<std::string> texts = degraded.gather(text_of(me.pe, size_of(me.pe)));
        ASSERT_EQ(texts.size(), static_cast<std::size_t>(n));
        for (int pe = 0; pe < n; ++pe)
          EXPECT_TRUE(texts[static_cast<std::size_t>(pe)] == text_of(pe, size_of(pe))) << pe;
      }
      EXPECT_FALSE(degraded.any_pe_lost());
    });
  }
}

/// PE 2 exits, or does not arrive, from the second barrier on.
TEST(DegradedJob, ALostPeIsExcludedAndNamed) {
  struct Case {
    Presence presence;
    const char* words;
    double min_s;
  };
  for (const Case& lost :
       {Case{Presence::gone, "its process is gone", 0},
        Case{Presence::silent, "has not answered for 2 s: it is stopped", 0},
        Case{Presence::answers, "it is late: its process answers", timeout_s / 2}}) {
    Lives lives;
    std::atomic<bool> over{false};
    run_thread_world(
        4, heap_bytes,
        [&](ThreadPe& me) {
          DegradedJob degraded = survivors_of(me, lives);
          degraded.barrier("all");
          if (me.pe == 2) {
            lives.presence[2] = lost.presence;
            eventually([&] { return over.load(); });
            // Resumed: it learns that the others have not waited, and that is not a failure.
            try {
              degraded.barrier("too late");
              ADD_FAILURE() << "it was left out";
            } catch (const Error& error) {
              EXPECT_EQ(error.code(), ExitCode::finding);
              EXPECT_NE(error.message().find("PE 2"), std::string::npos) << error.message();
            }
            return;
          }
          const auto begin = std::chrono::steady_clock::now();
          degraded.barrier("without one");
          const double took_s =
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
          EXPECT_GE(took_s, lost.min_s);
          EXPECT_TRUE(degraded.is_lost(2) && !degraded.is_lost(1) && degraded.any_pe_lost());
          const std::vector<std::string> texts = degraded.gather(text_of(me.pe, 100'000));
          for (int pe = 0; pe < 4; ++pe)
            EXPECT_TRUE(texts[static_cast<std::size_t>(pe)] ==
                        (pe == 2 ? "" : text_of(pe, 100'000)));
          degraded.barrier("once more");
          if (me.pe == 0) {
            ASSERT_EQ(degraded.lost().size(), 1U);
            EXPECT_EQ(degraded.lost()[0].pe, 2);
            EXPECT_NE(degraded.lost()[0].why.find(lost.words), std::string::npos)
                << degraded.lost()[0].why;
            over = true;
          }
        },
        timeout_s);
    EXPECT_TRUE(lives.aside[2]);
  }
}

/// In the middle of its text: none of it is used.
TEST(DegradedJob, APeLostWithinAGatherContributesNothing) {
  Lives lives;
  run_thread_world(
      3, heap_bytes,
      [&](ThreadPe& me) {
        DegradedJob degraded = survivors_of(me, lives);
        if (me.pe == 1) {
          degraded.barrier("its first chunk, of no size");
          lives.presence[1] = Presence::gone;
          return;
        }
        const std::vector<std::string> texts = degraded.gather(text_of(me.pe, 200'000));
        EXPECT_TRUE(texts[0] == text_of(0, 200'000) && texts[2] == text_of(2, 200'000));
        EXPECT_EQ(texts[1], "");
        EXPECT_TRUE(degraded.is_lost(1));
      },
      timeout_s);
}

/// It is late but responds: that is not a loss.
TEST(DegradedJob, ALatePeIsWaitedFor) {
  Lives lives;
  run_thread_world(
      3, heap_bytes,
      [&](ThreadPe& me) {
        DegradedJob degraded = survivors_of(me, lives);
        if (me.pe == 1)
          std::this_thread::sleep_for(std::chrono::milliseconds(700));
        degraded.barrier("a test");
        EXPECT_FALSE(degraded.any_pe_lost());
      },
      timeout_s);
}

} // namespace
} // namespace shmemctl
