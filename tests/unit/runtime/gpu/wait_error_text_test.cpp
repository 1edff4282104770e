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
               {"waiting for PE 1", "timed out after 2 s",
                "the word at offset 4096 of this PE's heap is 11, expected 12",
                "check the output of PE 1"});
}
TEST(WaitErrorText, AWordOfOtherMemoryHasNone) {
  expect_words(report_of(WaitKind::word, -1, 12, 11), ExitCode::deadline,
               {"waiting for another PE", "a word outside of this PE's heap is 11, expected 12"});
}

/// The most common one: a PE that did not arrive at a barrier.
TEST(WaitErrorText, NamesTheWordsOfATeam) {
  constexpr std::uint64_t team = 3;
  const auto expect_cell = [](std::size_t offset, const char* said) {
    expect_words(report_of(WaitKind::cell, 5, 8, 7, team * sizeof(DeviceTeamFlags) + offset),
                 ExitCode::deadline, {"waiting for PE 5", said, "of team 3 is 7, expected 8"});
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
               {"waiting for this PE's other blocks", "check what those blocks do, or raise "});
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

/// Of a call by NVSHMEM's name with wrong arguments.
void expect_call(WaitKind kind, DeviceCall call, DeviceArgument argument, std::uint64_t expected,
                 std::uint64_t seen, const std::vector<std::string>& said) {
  WaitReport report = report_of(kind, -1, expected, seen);
  report.call = call;
  report.argument = argument;
  EXPECT_TRUE(is_of_call(kind));
  EXPECT_FALSE(is_of_network(kind));
  expect_words(report, ExitCode::usage, said);
}
TEST(WaitErrorText, WrongArgumentsAreNamedAsNvshmemNamesThem) {
  const auto minus_one = static_cast<std::uint32_t>(-1);
  expect_call(WaitKind::no_such_pe, DeviceCall::put_nbi, DeviceArgument::pe, 2, 7,
              {"call NVSHMEM's put_nbi", "pe is wrong: 7 is none of the 2 PEs",
               "pass a number from 0 to 1"});
  expect_call(WaitKind::no_such_pe, DeviceCall::broadcast, DeviceArgument::root, 3, minus_one,
              {"call NVSHMEM's broadcast", "root is wrong: -1 is none of the 3 PEs"});
  expect_call(WaitKind::outside_heap, DeviceCall::get, DeviceArgument::source, 48, 0x7f00,
              {"call NVSHMEM's get", "source is wrong: 48 bytes at 0x7f00",
               "not in the symmetric heap", "nvshmem_malloc"});
  expect_call(WaitKind::misaligned, DeviceCall::atomic, DeviceArgument::dest, 8, 0x7f04,
              {"dest is wrong: 0x7f04 is not a multiple of 8 bytes", "place the variable"});
  expect_call(WaitKind::no_such_team, DeviceCall::maxloc_reduce, DeviceArgument::team, 63,
              minus_one, {"call NVSHMEM's maxloc_reduce", "team is wrong: -1 is not a team"});
  expect_call(WaitKind::no_such_value, DeviceCall::signal_op, DeviceArgument::operation, 0, 5,
              {"sig_op is wrong: 5 is none of the constants", "constants"});
  expect_call(WaitKind::no_such_value, DeviceCall::wait_until, DeviceArgument::comparison, 0, 6,
              {"call NVSHMEM's wait_until", "cmp is wrong"});
  const auto get_nbi = static_cast<std::uint64_t>(DeviceCall::get_nbi);
  const auto put_signal_nbi = static_cast<std::uint64_t>(DeviceCall::put_signal_nbi);
  expect_call(WaitKind::not_complete, DeviceCall::put, DeviceArgument::source, get_nbi, 0x7f08,
              {"call NVSHMEM's put",
               "source is wrong: an earlier get_nbi of this thread may still write to 0x7f08",
               "call nvshmem_quiet between"});
  expect_call(WaitKind::not_complete, DeviceCall::get, DeviceArgument::dest, put_signal_nbi, 0x7f00,
              {"dest is wrong: an earlier put_signal_nbi of this thread may still read 0x7f00"});
}
TEST(WaitErrorText, CallsThatDifferAreBothDescribed) {
  const auto expect_both = [](CollectiveCall mine, CollectiveCall theirs,
                              const std::vector<std::string>& said) {
    expect_words(report_of(WaitKind::calls_differ, 1, mine.word(), theirs.word()), ExitCode::usage,
                 said);
  };
  expect_both({DeviceCall::fcollect, 0, 8}, {DeviceCall::fcollect, 0, 16},
              {"call NVSHMEM's fcollect",
               "this PE calls fcollect of 8 bytes, and PE 1 calls fcollect of 16 bytes"});
  expect_both(
      {DeviceCall::broadcast, 0, 8}, {DeviceCall::broadcast, 2, 8},
      {"broadcast of 8 bytes from root 0, and PE 1 calls broadcast of 8 bytes from root 2"});
  expect_both({DeviceCall::reduce, 0, 8}, {DeviceCall::broadcast, 2, 8},
              {"calls reduce of 8 bytes, and PE 1 calls broadcast of 8 bytes"});
}
TEST(WaitErrorText, AKernelThatEndsTheJobIsNoFault) {
  expect_words(report_of(WaitKind::exit_asked, -1, 0, 7), ExitCode::interrupted,
               {"nvshmem_global_exit with status 7"});
  EXPECT_TRUE(is_of_call(WaitKind::exit_asked));
  for (const WaitKind kind : {WaitKind::word, WaitKind::no_path, WaitKind::qp_failed})
    EXPECT_FALSE(is_of_call(kind));
}

} // namespace
} // namespace shmemctl
