// The error text for each kind of a kernel's report.
#include <gtest/gtest.h>

#include "src/runtime/gpu/wait_error_text.h"

namespace shmemctl {
namespace {

constexpr int pe = 0;

WaitReport report_of(WaitKind kind, int peer, std::uint64_t expected, std::uint64_t seen,
                     std::uint64_t offset_bytes = UINT64_MAX) {
  WaitReport report{};
  report.state = WaitReport::written;
  report.peer = peer;
  report.expected = expected;
  report.seen = seen;
  report.offset_bytes = offset_bytes;
  report.kind = kind;
  return report;
}
std::string text_of(const WaitErrorText& words) {
  return words.attempted + " | " + words.message + " | " + words.fix;
}
void expect_words(const WaitReport& report, ExitCode code, const std::vector<std::string>& said) {
  const WaitErrorText words = describe_wait(report, pe, 2, "");
  const std::string text = text_of(words);
  EXPECT_EQ(words.code, code) << text;
  for (const std::string& part : said)
    EXPECT_NE(text.find(part), std::string::npos) << part << ": " << text;
  EXPECT_EQ(text.find(std::to_string(UINT64_MAX)), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_FALSE(words.fix.empty());
}

TEST(WaitErrorText, AWordOfTheHeapHasItsOffset) {
  expect_words(report_of(WaitKind::word, 1, 12, 11, 4096), ExitCode::deadline,
               {"wait for PE 1", "timed out after 2 s",
                "the word at offset 4096 of its heap is 11, expected 12",
                "check the output of PE 1"});
}
TEST(WaitErrorText, AWordOfOtherMemoryHasNone) {
  expect_words(report_of(WaitKind::word, -1, 12, 11), ExitCode::deadline,
               {"wait for another PE", "a word outside of its heap is 11, expected 12"});
}

/// The most common one: a PE that did not arrive at a barrier.
TEST(WaitErrorText, NamesTheWordsOfATeam) {
  constexpr std::uint64_t team = 3;
  const auto expect_cell = [](std::size_t offset, const char* said) {
    expect_words(report_of(WaitKind::cell, 5, 8, 7, team * sizeof(DeviceTeamFlags) + offset),
                 ExitCode::deadline, {"wait for PE 5", said, "of team 3 is 7, expected 8"});
  };
  constexpr std::size_t last = (DeviceTeamFlags::max_members - 1) * sizeof(std::uint64_t);
  for (const std::size_t at : {std::size_t{0}, last}) {
    expect_cell(offsetof(DeviceTeamFlags, arrived) + at, "arrivals at barriers and syncs");
    expect_cell(offsetof(DeviceTeamFlags, entered) + at, "the last collective that it has entered");
    expect_cell(offsetof(DeviceTeamFlags, done) + at, "its stores in collectives");
    expect_cell(offsetof(DeviceTeamFlags, sizes) + at, "the last collect whose size");
  }
  expect_cell(offsetof(DeviceTeamFlags, rounds), "the last barrier or sync");
  expect_cell(offsetof(DeviceTeamFlags, messages), "its last message");
  expect_cell(sizeof(DeviceTeamFlags) - 8, "its last message");
}
TEST(WaitErrorText, ThisPesOtherBlocksAreNotAPeer) {
  expect_words(report_of(WaitKind::cell, pe, 8, 7, offsetof(DeviceTeamFlags, done)),
               ExitCode::deadline,
               {"wait for this PE's other blocks", "check what those blocks do, or raise "});
}
TEST(WaitErrorText, CountsBlocksInABarrier) {
  expect_words(report_of(WaitKind::blocks, pe, 200, 132), ExitCode::deadline,
               {"synchronize the blocks", "132 of 200 blocks have arrived", "cooperative launch"});
}

TEST(WaitErrorText, ImpossibleCollectivesGiveTheReason) {
  expect_words(report_of(WaitKind::team_size, -1, 2, 300), ExitCode::usage,
               {"begin a collective of team 2", "300 members", "at most 256", "split the team"});
  expect_words(report_of(WaitKind::no_member, -1, 4, 2), ExitCode::usage,
               {"begin a collective of team 4", "not a member", "members only"});
  expect_words(report_of(WaitKind::no_reduction, -1, 0, 0), ExitCode::usage,
               {"team 0", "and, or, xor are for integers", "choose sum"});
}

/// The missing PE is named, and the one that timed out, whether it is a peer or this PE.
TEST(WaitErrorText, ATimeoutOfAPeerNamesTheMissingPe) {
  expect_words(report_of(WaitKind::call_failed, 5, 8, 3), ExitCode::deadline,
               {"complete a dispatch or combine with PE 3",
                "PE 3 timed out in call 8 waiting for PE 5", "check the output of PE 5"});
  expect_words(report_of(WaitKind::call_failed, pe, 8, 3), ExitCode::deadline,
               {"PE 3 timed out in call 8 waiting for this PE",
                "check what this PE did before the call, or raise "});
  expect_words(report_of(WaitKind::call_failed, 5, 8, pe), ExitCode::deadline,
               {"begin a dispatch or combine", "this PE timed out in call 8 waiting for PE 5"});
}

TEST(WaitErrorText, WithoutAPathTheReasonIsSaid) {
  const WaitReport report = report_of(WaitKind::no_path, 6, 0, 0);
  EXPECT_NE(text_of(describe_wait(report, pe, 2, "other container")).find("path to it: other"),
            std::string::npos);
  EXPECT_NE(text_of(describe_wait(report, pe, 2, "")).find("kernels have no path to it |"),
            std::string::npos);
}

TEST(WaitErrorText, RecognisesReportsOfTheNetwork) {
  for (const WaitKind kind : {WaitKind::word, WaitKind::cell, WaitKind::blocks, WaitKind::team_size,
                              WaitKind::no_member, WaitKind::no_reduction, WaitKind::call_failed})
    EXPECT_FALSE(is_of_network(kind)) << static_cast<int>(kind);
  for (const WaitKind kind : {WaitKind::fifo_room, WaitKind::qp_failed, WaitKind::no_path})
    EXPECT_TRUE(is_of_network(kind)) << static_cast<int>(kind);
}

} // namespace
} // namespace shmemctl
