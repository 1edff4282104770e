// The PEs' results, merged: reachability, failures, phases; text for people; rows and findings.
#include "src/instruments/bringup/verdict.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/validate.h"
#include "src/instruments/bringup/bringup.h"
#include "transports/shm/shm.h"

namespace shmemctl {
namespace {

constexpr unsigned all_capabilities = can_put | can_get | can_atomics | can_put_signal;

TransportReach transport(const std::string& name, int n_pes,
                         const std::function<bool(int, int)>& reached) {
  TransportReach reach(name, n_pes);
  for (int source = 0; source < n_pes; ++source) {
    ReachRow row(name);
    for (int target = 0; target < n_pes; ++target)
      if (reached(source, target))
        row.add(all_capabilities, "");
      else
        row.add(0, "different nodes");
    reach.set_row(source, row);
  }
  return reach;
}

BringupVerdict verdict_of(int n_pes, std::vector<TransportReach> transports,
                          std::vector<PairFailure> failures = {}) {
  BringupVerdict verdict;
  verdict.n_pes = n_pes;
  verdict.transports = std::move(transports);
  verdict.failures = std::move(failures);
  verdict.unreachable = unreachable_pairs(verdict.transports, n_pes);
  return verdict;
}

bool everywhere(int, int) {
  return true;
}
bool same_half_of_4(int source, int target) {
  return source / 2 == target / 2;
}

Placement placement_of(int n_pes, int pes_per_node) {
  std::vector<PeHost> hosts(static_cast<std::size_t>(n_pes));
  Placement placement;
  placement.n_pes = n_pes;
  for (int pe = 0; pe < n_pes; ++pe) {
    const int node = pe / pes_per_node;
    if (node == static_cast<int>(placement.node_pes.size()))
      placement.node_pes.emplace_back();
    placement.node_pes.back().push_back(pe);
    placement.node.push_back(node);
    hosts[static_cast<std::size_t>(pe)].host_name = "host" + std::to_string(node);
  }
  placement.hosts = hosts;
  return placement;
}

PairFailure failure_of(int source, int target, PairOp op = PairOp::put) {
  PairFailure failure;
  failure.op = op;
  failure.source = source;
  failure.target = target;
  failure.size_bytes = 4096;
  failure.offset_bytes = 17;
  failure.expected = "0a1b";
  failure.found = "a5a5";
  failure.note = "nothing arrived";
  return failure;
}

TEST(ReachMap, RowsOfAllPesBecomeOneMap) {
  std::vector<std::string> texts;
  for (int pe = 0; pe < 2; ++pe) {
    std::vector<TransportEntry> entries;
    entries.push_back({make_shm_transport(),
                       {{all_capabilities, "mapped"}, {pe == 0 ? 0U : all_capabilities, "\xff"}},
                       {}});
    texts.push_back(reach_message(entries));
  }
  const std::vector<TransportReach> merged = merge_reach(texts);
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].name, "shm");
  EXPECT_EQ(merged[0].from(0, 0), all_capabilities);
  EXPECT_EQ(merged[0].from(0, 1), 0U);
  EXPECT_EQ(merged[0].from(1, 1), all_capabilities);
  EXPECT_EQ(merged[0].why(1, 0), "mapped");
  EXPECT_EQ(unreachable_pairs(merged, 2), (std::vector<PePair>{{0, 1}}));
}

/// The message of a PE that reaches those with a capability by transport "a".
std::string message_of(const std::vector<unsigned>& capabilities, const std::string& reason = "") {
  ReachRow row("a");
  for (const unsigned capability : capabilities)
    row.add(capability, reason);
  return to_bytes(std::vector<ReachRow>{row});
}

TEST(ReachMap, TransportThatOnePeLacksReachesNothingFromThere) {
  const std::vector<TransportReach> merged = merge_reach({reach_message({}), message_of({1, 1})});
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].from(0, 1), 0U);
  EXPECT_EQ(merged[0].from(1, 0), 1U);
  EXPECT_EQ(merged[0].why(1, 0), "");
}

TEST(ReachMap, APeAloneHasToReachItself) {
  EXPECT_EQ(unreachable_pairs(merge_reach({message_of({0}, "gone")}), 1),
            (std::vector<PePair>{{0, 0}}));
  EXPECT_TRUE(unreachable_pairs(merge_reach({message_of({1})}), 1).empty());
}

/// The message of a PE of a job with that many on each node.
std::string message_in_job(int pe, int n_pes, int pes_per_node) {
  ReachRow row("shm");
  for (int target = 0; target < n_pes; ++target)
    if (target / pes_per_node == pe / pes_per_node)
      row.add(all_capabilities, "shared memory of one machine");
    else
      row.add(0, "on another machine");
  return to_bytes(std::vector<ReachRow>{row});
}

/// What PEs send, and what each of them keeps, does not grow with the square of their number.
TEST(ReachMap, ALargeJobTakesAFewBytesForEachPe) {
  constexpr int n_pes = 1024, pes_per_node = 8;
  std::vector<std::string> messages;
  std::size_t longest = 0;
  for (int pe = 0; pe < n_pes; ++pe) {
    messages.push_back(message_in_job(pe, n_pes, pes_per_node));
    longest = std::max(longest, messages.back().size());
  }
  EXPECT_EQ(longest, message_in_job(pes_per_node, 3 * pes_per_node, pes_per_node).size())
      << "as in the middle of three nodes";
  EXPECT_LT(longest, 160U);
  const std::vector<TransportReach> merged = merge_reach(messages);
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_LE(merged[0].run_count(), std::size_t{3} * n_pes);
  EXPECT_EQ(merged[0].way_count(), 2U);
  EXPECT_EQ(merged[0].from(9, 15), all_capabilities);
  EXPECT_EQ(merged[0].from(9, 16), 0U);
  EXPECT_EQ(merged[0].why(9, 7), "on another machine");
  EXPECT_EQ(checkable_pairs(merged[0], PairOp::put), std::size_t{n_pes} * pes_per_node);
}

/// Reasons that name the PE are as many as there are PEs, and not as many as there are pairs.
TEST(ReachMap, EachReasonIsKeptOnce) {
  constexpr int n_pes = 64;
  std::vector<std::string> messages;
  for (int pe = 0; pe < n_pes; ++pe) {
    ReachRow row("a");
    for (int target = 0; target < n_pes; ++target)
      row.add(target % 2 == 0 ? 1U : 0U, "PE " + std::to_string(target) + " says so");
    messages.push_back(to_bytes(std::vector<ReachRow>{row}));
  }
  const std::vector<TransportReach> merged = merge_reach(messages);
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].way_count(), std::size_t{n_pes});
  EXPECT_EQ(merged[0].why(5, 63), "PE 63 says so");
  EXPECT_EQ(unreachable_pairs(merged, n_pes).size(), std::size_t{n_pes} * n_pes / 2 - n_pes / 2);
}

TEST(ReachMap, WhatOneTransportDoesNotReachAnotherMay) {
  const std::vector<TransportReach> both = {
      transport("shm", 4, same_half_of_4),
      transport("ucx", 4, [](int source, int target) { return source != 0 || target != 3; })};
  EXPECT_EQ(unreachable_pairs(both, 4), (std::vector<PePair>{{0, 3}}));
  EXPECT_EQ(unreachable_pairs({both[0]}, 4).size(), 8U);
}

TEST(ReachMap, GarbageIsRefused) {
  ReachRow no_such_way("a"), no_pe("a");
  no_such_way.add(1, "x");
  no_such_way.add(1, "x");
  no_pe = no_such_way;
  no_such_way.runs[0].second = 5;
  no_pe.runs.emplace_back(0, 0);
  const std::string good = message_of({1, 1});
  for (const std::string& message :
       {std::string(), std::string("x"), message_of({1}), message_of({1, 1, 1}), good + "x",
        good.substr(0, good.size() - 1), to_bytes(std::vector<ReachRow>{no_such_way}),
        to_bytes(std::vector<ReachRow>{no_pe})})
    EXPECT_THROW(merge_reach({message, reach_message({})}), Error);
  EXPECT_NO_THROW(merge_reach({good, reach_message({})}));
}

TEST(Failures, GoToOthersAndBackSortedAndOnce) {
  const std::vector<PairFailure> some = {failure_of(3, 1), failure_of(0, 2, PairOp::put_signal),
                                         failure_of(0, 2)};
  const std::vector<PairFailure> merged =
      merge_failures({failures_message(some), failures_message({some[2]}), failures_message({}),
                      failures_message({})});
  ASSERT_EQ(merged.size(), 3U);
  EXPECT_EQ(merged[0], some[2]);
  EXPECT_EQ(merged[1], some[1]);
  EXPECT_EQ(merged[2], some[0]);
}

TEST(Failures, ManyStayBelowTheLimitAndKeepTheirPairs) {
  std::vector<PairFailure> many;
  for (int pe = 0; pe < 4000; ++pe) {
    many.push_back(failure_of(pe, 0));
    many.back().note = std::string(300, '\x01');
  }
  const std::string message = failures_message(many);
  EXPECT_LT(message.size(), std::size_t{1} << 20);
  std::vector<std::string> messages(4000, failures_message({}));
  messages[0] = message;
  EXPECT_EQ(merge_failures(messages).size(), 4000U);
}

TEST(Failures, GarbageIsRefused) {
  const std::string none = failures_message({}), good = failures_message({failure_of(0, 1)});
  const auto with_op = [&good](char op) {
    std::string bytes = good;
    bytes[8] = op; // after the count and the transport
    return bytes;
  };
  EXPECT_NO_THROW(merge_failures({with_op(4), none}));
  for (const std::string& message :
       {std::string(), std::string("{"), good + "x", good.substr(0, good.size() - 1), with_op(5),
        failures_message({failure_of(0, 5)}), failures_message({failure_of(-1, 0)})})
    EXPECT_THROW(merge_failures({message, none}), Error);
}

TEST(Failures, DescriptionTellsEverything) {
  EXPECT_EQ(describe(failure_of(1, 3), "shm"),
            "put of 4096 bytes by PE 1 to PE 3, transport shm: at offset 17 expected 0a1b, found "
            "a5a5 (nothing arrived)");
  PairFailure get = failure_of(1, 3);
  get.op = PairOp::get;
  EXPECT_EQ(describe(get, "shm").find("get of 4096 bytes by PE 1 from PE 3, transport shm: "), 0U);
}

TEST(MergePhases, LongestTimeWins) {
  const std::vector<PhaseRow> rows =
      merge_phases({phases_message({{"heap", 1.5}, {"teams", 2}}),
                    phases_message({{"heap", 4}, {"teams", 1}}), phases_message({})});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "heap");
  EXPECT_EQ(rows[0].time_ms, 4);
  EXPECT_EQ(rows[0].slowest_pe, 1);
  EXPECT_EQ(rows[1].slowest_pe, 0);
  for (const std::string& message :
       {std::string(), std::string("[1]"), phases_message({{"heap", 1}}) + "x"})
    EXPECT_THROW(merge_phases({message}), Error);
}

TEST(Matrix, ShowsEveryKindOfPair) {
  const BringupVerdict verdict =
      verdict_of(4, {transport("shm", 4, same_half_of_4)}, {failure_of(2, 3)});
  EXPECT_EQ(matrix_text(verdict, 0, placement_of(4, 2).node), "       0 1 2 3\n"
                                                              "  PE 0 + + . .\n"
                                                              "  PE 1 + + . .\n"
                                                              "  PE 2 . . + x\n"
                                                              "  PE 3 . . + +\n");
}

TEST(Matrix, PeThatDoesNotReachItselfIsNoFailure) {
  const BringupVerdict verdict = verdict_of(2, {transport("ibrc", 2, std::not_equal_to<int>())});
  EXPECT_TRUE(verdict.passed());
  EXPECT_EQ(matrix_text(verdict, 0, {0, 0}), "       0 1\n  PE 0 - +\n  PE 1 + -\n");
}

TEST(Matrix, ManyPesAreCollapsedToNodesWhereTheWorstCounts) {
  const BringupVerdict verdict =
      verdict_of(40, {transport("shm", 40, everywhere)}, {failure_of(25, 3)});
  EXPECT_EQ(matrix_text(verdict, 0, placement_of(40, 20).node), "         0 1\n"
                                                                "  node 0 + +\n"
                                                                "  node 1 x +\n");
}

TEST(VerdictText, GivesReasonsForWhatIsNotReached) {
  const std::string text =
      verdict_text(verdict_of(4, {transport("shm", 4, same_half_of_4)}), placement_of(4, 2));
  EXPECT_NE(text.find("not reached: 0>2, 0>3, 1>2, 1>3, 2>0, 2>1, 3>0, 3>1 (different nodes)"),
            std::string::npos)
      << text;
}

TEST(PlacementText, NamesHostsAndRanges) {
  EXPECT_EQ(placement_text(placement_of(5, 3)), "node  host   PEs\n"
                                                "   0  host0  0-2\n"
                                                "   1  host1  3-4\n");
}

TEST(Report, OneRowPerTransportAndOperation) {
  Report report;
  const BringupVerdict verdict = verdict_of(
      4,
      {transport("shm", 4, same_half_of_4), transport("none", 4, [](int, int) { return false; })},
      {failure_of(2, 3)});
  add_to_report(verdict, report);
  ASSERT_EQ(report.results.size(), 10U);
  EXPECT_EQ(report.results[0].case_name, "bringup.put");
  EXPECT_EQ(report.results[0].status, RowStatus::fail);
  EXPECT_EQ(report.results[0].reason, "1 of 8 pairs failed: 2>3");
  EXPECT_EQ(report.results[1].verified, Verified::passed);
  EXPECT_EQ(report.results[1].reason, "8 pairs");
  EXPECT_EQ(report.results[5].status, RowStatus::skip);
  ASSERT_EQ(report.findings.size(), 2U);
  EXPECT_EQ(report.findings[0].id, "pair-unreachable");
  EXPECT_NE(report.findings[0].message.find("8 pairs"), std::string::npos);
  EXPECT_NE(report.findings[0].message.find("shm from PE 0 to PE 2: different nodes"),
            std::string::npos);
  EXPECT_EQ(report.findings[1].id, "pair-corrupt");
  EXPECT_EQ(report.findings[1].subject, "PE 2 to PE 3");
  report.phases = {{"heap", 1.25, 3}};
  report.started_at = utc_now();
  report.finished_at = utc_now();
  const auto violations = validate_report(to_json(report));
  EXPECT_TRUE(violations.empty()) << violations[0].pointer << violations[0].message;
  EXPECT_FALSE(verdict.passed());
}

TEST(Report, RowsHaveTheTimeThatTheyTook) {
  Report report;
  BringupVerdict verdict = verdict_of(4,
                                      {transport("shm", 4, everywhere),
                                       transport("none", 4, [](int, int) { return false; }),
                                       transport("gpu", 4, everywhere)},
                                      {});
  verdict.time_s = {{0.5, 0.25, 0.125, 0.0625, 2}, {}}; // kernels have none
  add_to_report(verdict, report);
  ASSERT_EQ(report.results.size(), 15U);
  EXPECT_EQ(report.results[0].time_s, 0.5);
  EXPECT_EQ(report.results[4].time_s, 2);
  EXPECT_EQ(report.results[5].time_s, std::nullopt) << "it was skipped";
  EXPECT_EQ(report.results[10].time_s, std::nullopt);
}

TEST(Report, AnUnfinishedCheckReportsItsProgress) {
  Report report;
  add_unfinished("shm", 2, 8, report);
  ASSERT_EQ(report.results.size(), 5U);
  EXPECT_EQ(report.results[0].verified, Verified::unchecked);
  EXPECT_EQ(report.results[0].reason, "the run ended during round 3 of 8, before the verdict");
}

} // namespace
} // namespace shmemctl
