// Looks findings up by id, and checks what holds for every one of them.
#pragma once

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "src/base/finding.h"

namespace shmemctl::testing {

/// The only finding of that id, or nullptr; fails the test if there are several.
inline const Finding* find(const Findings& findings, const std::string& id) {
  const Finding* found = nullptr;
  for (const Finding& finding : findings)
    if (finding.id == id) {
      EXPECT_EQ(found, nullptr) << id << " twice: " << finding.message;
      found = &finding;
    }
  return found;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string ids(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text +=
        std::string(text.empty() ? "" : " ") + finding.id + "(" + to_string(finding.severity) + ")";
  return text;
}

/// One line each, nothing empty, most severe first.
inline void expect_well_formed(const Findings& findings) {
  for (const Finding& finding : findings) {
    for (const std::string* text :
         {&finding.id, &finding.subject, &finding.message, &finding.fix}) {
      EXPECT_FALSE(text->empty()) << finding.id;
      EXPECT_EQ(text->find('\n'), std::string::npos) << finding.id;
    }
  }
  EXPECT_TRUE(
      std::is_sorted(findings.begin(), findings.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; }));
}

} // namespace shmemctl::testing
