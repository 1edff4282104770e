#include "src/base/json_values.h"

#include <gtest/gtest.h>
#include <limits>

namespace {

using nlohmann::json;
using shmemctl::require_whole_number;
using shmemctl::whole_number;

TEST(WholeNumber, IsWhatTheTypeHolds) {
  EXPECT_EQ(whole_number<int>(json(7)), 7);
  EXPECT_EQ(whole_number<int>(json(-7)), -7);
  EXPECT_EQ(whole_number<int>(json(3.0)), 3);
  EXPECT_EQ(whole_number<std::uint64_t>(json(std::numeric_limits<std::uint64_t>::max())),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(whole_number<unsigned>(json(-1)), std::nullopt);
  EXPECT_EQ(whole_number<int>(json(std::int64_t{1} << 31)), std::nullopt);
}

TEST(WholeNumber, IsNoneWhereACastWouldMakeOne) {
  // The second value was found by a fuzzer as a transport's number.
  for (const char* text : {"0.5", "[0]", "\"1\"", "null", "true", "1e300", "-1e300",
                           "666666666666666666666666666666666666666666666660986"}) {
    const json value = json::parse(text);
    EXPECT_EQ(whole_number<int>(value), std::nullopt) << text;
    EXPECT_THROW(require_whole_number<std::int64_t>(value), std::out_of_range) << text;
  }
  EXPECT_EQ(whole_number<int>(json(std::numeric_limits<double>::quiet_NaN())), std::nullopt);
}

} // namespace
