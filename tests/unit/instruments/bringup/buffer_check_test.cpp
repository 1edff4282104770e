// What the PEs say of registered buffers, put together, and the report that it makes.
#include "src/instruments/bringup/buffer_check.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace shmemctl {
namespace {

std::string bytes_of(const std::string& path, const std::string& problem,
                     const std::vector<BufferFailure>& failures) {
  return to_bytes(BufferReport{path, problem, failures});
}

const BufferFailure wrong_put{0, 1, 4096, 221, 0x5c, 0xa3};

TEST(BufferCheck, PathsProblemsAndFailuresOfAllPes) {
  const BufferVerdict verdict =
      merge_buffer_reports({bytes_of("zero-copy", "", {}), bytes_of("staged", "", {wrong_put}),
                            bytes_of("", "to PE 0: no memory", {}), bytes_of("zero-copy", "", {})});
  EXPECT_EQ(verdict.pairs, 3);
  EXPECT_EQ(verdict.paths, (std::vector<std::string>{"staged", "zero-copy"}));
  EXPECT_EQ(verdict.problems, std::vector<std::string>{"PE 2 to PE 0: no memory"});
  EXPECT_EQ(verdict.failures, std::vector<BufferFailure>{wrong_put});
  EXPECT_FALSE(verdict.passed());
}

TEST(BufferCheck, AnInvalidMessageNamesItsPe) {
  const std::string good = bytes_of("zero-copy", "", {wrong_put});
  for (const std::string& bad : {std::string(), good.substr(1), good + "x"}) {
    try {
      merge_buffer_reports({good, bad});
      ADD_FAILURE() << bad.size() << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.subject(), "PE 1");
    }
  }
}

TEST(BufferCheck, APassedCheckIsARow) {
  Report report;
  add_to_report(
      merge_buffer_reports({bytes_of("zero-copy", "", {}), bytes_of("zero-copy", "", {})}), report);
  ASSERT_EQ(report.results.size(), 1U);
  EXPECT_EQ(report.results[0].case_name, "bringup.registered-buffer");
  EXPECT_EQ(report.results[0].verified, Verified::passed);
  EXPECT_EQ(report.results[0].reason, "2 pairs, zero-copy");
  EXPECT_TRUE(report.findings.empty());
}

TEST(BufferCheck, WrongDataIsAnErrorThatNamesTheFirstWrongByte) {
  Report report;
  const BufferVerdict verdict =
      merge_buffer_reports({bytes_of("zero-copy", "", {}), bytes_of("zero-copy", "", {wrong_put})});
  add_to_report(verdict, report);
  EXPECT_EQ(report.results.at(0).status, RowStatus::fail);
  EXPECT_EQ(report.results.at(0).verified, Verified::failed);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].id, "buffer-corrupt");
  EXPECT_EQ(report.findings[0].severity, Severity::error);
  EXPECT_NE(
      report.findings[0].message.find("put of 4096 bytes from PE 0 into a registered buffer of "
                                      "PE 1: at offset 221 of the buffer expected 5c, found a3"),
      std::string::npos)
      << report.findings[0].message;
  EXPECT_EQ(buffers_line(verdict), "registered buffers: x 1 of 2 pairs got wrong data\n");
}

TEST(BufferCheck, MemoryThatCannotBeRegisteredIsAWarningAndNoVerdict) {
  Report report;
  const BufferVerdict verdict = merge_buffer_reports(
      {bytes_of("", "to PE 1: out of memory", {}), bytes_of("", "to PE 0: x", {})});
  EXPECT_TRUE(verdict.passed());
  add_to_report(verdict, report);
  EXPECT_EQ(report.results.at(0).status, RowStatus::skip);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].id, "buffer-unavailable");
  EXPECT_EQ(report.findings[0].severity, Severity::warning);
}

TEST(BufferCheck, PesThatShareNoMemoryHaveNoRow) {
  Report report;
  const BufferVerdict verdict = merge_buffer_reports({bytes_of("", "", {}), bytes_of("", "", {})});
  add_to_report(verdict, report);
  EXPECT_TRUE(report.results.empty() && report.findings.empty());
  EXPECT_EQ(buffers_line(verdict), "registered buffers: - no PEs share memory\n");
}

} // namespace
} // namespace shmemctl
