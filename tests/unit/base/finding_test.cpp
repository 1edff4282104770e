#include "src/base/finding.h"

#include <gtest/gtest.h>

namespace shmemctl {
namespace {

TEST(Severity, NamesAreReadBack) {
  for (const Severity severity : {Severity::info, Severity::warning, Severity::error})
    EXPECT_EQ(parse_severity(to_string(severity)), severity);
  for (const char* other : {"", "warn", "Error", "error "})
    EXPECT_EQ(parse_severity(other), std::nullopt) << other;
}

TEST(Severity, FindingsOfAtLeastOne) {
  const Findings findings = {{"a", Severity::info, "", "", ""},
                             {"b", Severity::warning, "", "", ""}};
  EXPECT_TRUE(has_finding(findings, Severity::info));
  EXPECT_TRUE(has_finding(findings, Severity::warning));
  EXPECT_FALSE(has_finding(findings, Severity::error));
  EXPECT_FALSE(has_finding({}, Severity::info));
}

} // namespace
} // namespace shmemctl
