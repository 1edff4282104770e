// The table behind docs/reference/findings.md. tests/integration/test_finding_ids.py compares its
// ids with those in the sources.
#include <algorithm>
#include <gtest/gtest.h>
#include <regex>
#include <set>

#include "reports/finding_reference.h"
#include "src/instruments/doctor/doctor.h"

namespace shmemctl {
namespace {

TEST(FindingReference, EveryIdHasOneRowOfSentences) {
  const std::regex kebab("[a-z][a-z0-9]*(-[a-z0-9]+)*");
  const std::regex severities("(error|warning|info)(, (warning|info))*");
  std::set<std::string> seen;
  for (const FindingReference& row : finding_reference()) {
    EXPECT_TRUE(std::regex_match(row.id, kebab)) << row.id;
    EXPECT_TRUE(seen.insert(row.id).second) << row.id << " is there twice";
    EXPECT_TRUE(std::regex_match(row.severities, severities)) << row.id;
    for (const std::string& text : {row.meaning, row.evidence, row.fix}) {
      ASSERT_FALSE(text.empty()) << row.id;
      EXPECT_EQ(text.back(), '.') << row.id << ": " << text;
      EXPECT_EQ(std::count(text.begin(), text.end(), '`') % 2, 0) << row.id << ": " << text;
    }
  }
  EXPECT_GT(seen.size(), 120u);
}

TEST(FindingReference, GroupsStandTogether) {
  std::set<std::string> closed;
  std::string group;
  for (const FindingReference& row : finding_reference())
    if (row.group != group) {
      EXPECT_TRUE(closed.insert(row.group).second) << row.group << " begins again at " << row.id;
      group = row.group;
    }
}

TEST(FindingReference, DoctorsChecksAreThereInDoctorsOrder) {
  std::vector<std::string> ids, checks;
  for (const FindingReference& row : finding_reference())
    if (row.group == "Checks of doctor")
      ids.push_back(row.id);
  for (const Check& check : all_checks())
    // `topo` has the finding too: it is listed in that group
    if (std::string_view(check.id) != "remote-transport-unknown")
      checks.emplace_back(check.id);
  EXPECT_EQ(ids, checks);
}

} // namespace
} // namespace shmemctl
