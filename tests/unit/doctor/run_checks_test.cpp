#include "src/doctor/doctor.h"

#include <chrono>
#include <gtest/gtest.h>
#include <iostream>
#include <set>

#include "src/base/error.h"

namespace shmemctl {

TEST(Checks, IdsAreUniqueAndKebabCase) {
  std::set<std::string> ids;
  for (const Check& check : all_checks()) {
    EXPECT_TRUE(ids.insert(check.id).second) << check.id;
    EXPECT_EQ(check.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string::npos)
        << check.id;
  }
}

} // namespace shmemctl
