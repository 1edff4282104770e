// Messages between PEs: round trips, and malformed ones are refused.
#include <gtest/gtest.h>

#include "transports/mlx5/wire.h"

namespace shmemctl::mlx5 {
namespace {

template <class Value, class Decode>
void expect_only_whole(const Value& value, const Decode& decode) {
  const std::string bytes = encode(value);
  EXPECT_EQ(decode(bytes), value);
  EXPECT_FALSE(decode(bytes + "x"));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode(bytes.substr(0, length))) << length << " of " << bytes.size();
  std::string other_version = bytes;
  other_version[0] = 9;
  EXPECT_FALSE(decode(other_version));
}

TEST(Mlx5Wire, ComesBackWhole) {
  expect_only_whole(Summary{Summary::Kind::emulated, "", false, "ucx", 4026531840, "below"},
                    decode_summary);
  expect_only_whole(Summary{Summary::Kind::none, "no device", false, "", 1, ""}, decode_summary);
  expect_only_whole(Summary{Summary::Kind::real, "", true, "", 1, ""}, decode_summary);
  expect_only_whole(Hello{"host", 3, {{"mlx5_0", 1}, {"mlx5_1", 2}}}, decode_hello);
  expect_only_whole(QueueNames{{std::string(40, 'a'), std::string(40, 'b')}}, decode_queue_names);
}

TEST(Mlx5Wire, LimitsAreKept) {
  EXPECT_FALSE(decode_hello(encode(Hello{"host", 0, {{"mlx5_0", 1}}})));
  EXPECT_FALSE(decode_hello(encode(Hello{"host", 66, {{"mlx5_0", 1}}})));
  EXPECT_FALSE(decode_hello(encode(Hello{"host", 1, {}})));
  EXPECT_FALSE(decode_hello(encode(Hello{"host", 1, std::vector<Hello::Port>(9)})));
  const Hello::Port long_name{std::string(wire_limits::text_bytes + 10, 'd'), 1};
  const auto cut = decode_hello(encode(Hello{"", 1, {long_name}}));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->ports[0].device.size(), wire_limits::text_bytes);
}

} // namespace
} // namespace shmemctl::mlx5
