// Checks the Error that a call throws.
#pragma once

#include <gtest/gtest.h>
#include <string>

#include "src/base/error.h"

namespace shmemctl::test {

/// Runs `call`, which must throw an Error with this code whose message holds all of `words`;
/// returns "message | fix".
template <class Call>
std::string expect_error(ExitCode code, const std::initializer_list<const char*>& words,
                         const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_FALSE(error.fix().empty()) << error.message();
    for (const char* word : words)
      EXPECT_NE(error.message().find(word), std::string::npos)
          << "no '" << word << "' in: " << error.message();
    return error.message() + " | " + error.fix();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

} // namespace shmemctl::test
