// What a refusal suggests instead, for tests that try it.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::test {

/// "use the nearest legal value: --num-experts 248 with --ep-ranks 8" is {num-experts: 248,
/// ep-ranks: 8}; without a flag it is the error's subject. One map for each alternative of "7040 or
/// 7168"; none if nothing is suggested.
inline std::vector<std::map<std::string, std::string>> suggested(const Error& error) {
  const std::string prefix = "use the nearest legal value: ";
  if (!starts_with(error.fix(), prefix))
    return {};
  std::vector<std::map<std::string, std::string>> all;
  std::map<std::string, std::string> flags;
  std::string flag = error.subject();
  for (const std::string& word : split(error.fix().substr(prefix.size()), ' ')) {
    if (word == "with")
      continue;
    if (word == "or") {
      all.push_back(flags);
      continue;
    }
    if (starts_with(word, "--")) {
      flag = word.substr(2);
      continue;
    }
    flags[flag] = word;
  }
  all.push_back(flags);
  return all;
}

/// Takes what is refused and suggested until nothing is. Fails if a flag is suggested twice: then
/// the first value was not legal after all.
/// @param attempt throws Error for what is not legal @param apply sets a flag of `request`
template <class Request, class Attempt, class Apply>
void expect_suggestions_accepted(const Request& request, const Attempt& attempt, const Apply& apply,
                                 const std::string& story = "",
                                 std::vector<std::string> used = {}) {
  try {
    attempt(request);
  } catch (const Error& error) {
    const std::string said = story + "\n" + error.message() + " | " + error.fix();
    const auto alternatives = suggested(error);
    ASSERT_FALSE(alternatives.empty()) << said;
    for (const auto& flags : alternatives) {
      Request next = request;
      std::vector<std::string> more = used;
      for (const auto& [flag, value] : flags) {
        ASSERT_EQ(std::count(used.begin(), used.end(), flag), 0) << said;
        more.push_back(flag);
        apply(next, flag, value);
      }
      expect_suggestions_accepted(next, attempt, apply, said, more);
    }
  }
}

} // namespace shmemctl::test
