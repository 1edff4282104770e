// Messages between PEs: round trips, and malformed ones are refused.
#include <gtest/gtest.h>

#include "transports/mlx5/wire.h"

namespace shmemctl::mlx5 {
namespace {

template <class Value>
void expect_only_whole(const Value& value) {
  const std::string bytes = to_bytes(value);
  EXPECT_EQ(from_bytes<Value>(bytes), value);
  EXPECT_FALSE(from_bytes<Value>(bytes + "x"));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(from_bytes<Value>(bytes.substr(0, length))) << length << " of " << bytes.size();
}

bool is_read(const Hello& hello) {
  return from_bytes<Hello>(to_bytes(hello)).has_value();
}

TEST(Mlx5Wire, ComesBackWhole) {
  expect_only_whole(Summary{Summary::Kind::emulated, "", false, "ucx", 4026531840, "below"});
  expect_only_whole(Summary{Summary::Kind::none, "no device", false, "", 1, ""});
  expect_only_whole(Summary{Summary::Kind::real, "", true, "", 1, ""});
  expect_only_whole(Hello{"host", 3, {{"mlx5_0", 1}, {"mlx5_1", 2}}});
}

TEST(Mlx5Wire, LimitsAreKept) {
  EXPECT_FALSE(is_read(Hello{"host", 0, {{"mlx5_0", 1}}}));
  EXPECT_FALSE(is_read(Hello{"host", 129, {{"mlx5_0", 1}}}));
  EXPECT_FALSE(is_read(Hello{"host", 1, {}}));
  EXPECT_FALSE(is_read(Hello{"host", 1, std::vector<Hello::Port>(9)}));
  const Hello::Port long_name{std::string(rc::max_text_bytes + 10, 'd'), 1};
  const auto cut = from_bytes<Hello>(to_bytes(Hello{"", 1, {long_name}}));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->ports[0].device.size(), rc::max_text_bytes);
}

} // namespace
} // namespace shmemctl::mlx5
