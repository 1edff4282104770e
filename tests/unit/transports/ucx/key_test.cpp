#include "transports/ucx/key.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace shmemctl::test {
namespace {

std::vector<UcxPiece> two_pieces() {
  return {{0, 4096, 0x7f0000000000, std::string("\0key", 4)}, {4096, 8192, 0x7f0000100000, "k"}};
}

TEST(UcxKey, ComesBackAsItWas) {
  EXPECT_EQ(parse_key(to_key(two_pieces())), two_pieces());
  EXPECT_TRUE(parse_key(to_key({})).empty());
}

TEST(UcxKey, AnythingElseIsRefused) {
  const std::string key = to_key(two_pieces());
  for (std::size_t length = 0; length < key.size(); ++length)
    expect_error(ExitCode::usage, {"UCX rkey", "too early"},
                 [&] { parse_key(key.substr(0, length)); });
  expect_error(ExitCode::usage, {"bytes follow"}, [&] { parse_key(key + "x"); });
  std::vector<UcxPiece> pieces = two_pieces();
  pieces[1].size_bytes = 0;
  expect_error(ExitCode::usage, {"piece 1"}, [&] { parse_key(to_key(pieces)); });
  pieces = two_pieces();
  pieces[1].size_bytes = UINT64_MAX - 4000; // the end of the piece has no offset
  expect_error(ExitCode::usage, {"piece 1"}, [&] { parse_key(to_key(pieces)); });
  pieces = two_pieces();
  pieces[0].address = UINT64_MAX - 10; // the end of the piece has no address
  expect_error(ExitCode::usage, {"piece 0"}, [&] { parse_key(to_key(pieces)); });
  pieces = two_pieces();
  pieces[0].packed.clear();
  expect_error(ExitCode::usage, {"piece 0"}, [&] { parse_key(to_key(pieces)); });
  pieces.assign(max_ucx_pieces + 1, {0, 1, 1, "k"});
  expect_error(ExitCode::usage, {"17 pieces"}, [&] { parse_key(to_key(pieces)); });
}

} // namespace
} // namespace shmemctl::test
