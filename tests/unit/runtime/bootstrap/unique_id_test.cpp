#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl {
namespace {

const std::string hex = "000102030405060708090a0b0c0d0eff";

std::string problem_of(const std::string& text) {
  try {
    UniqueId::parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.message();
  }
  return "it was accepted";
}

TEST(UniqueId, RoundTripsThroughText) {
  for (const std::string addresses : {"10.0.0.1:4711", "10.0.0.1:4711,[fd00::1]:4711",
                                      "unix:shmemctl-0123456789abcdef", "[fe80::1%lo]:4711"}) {
    const std::string text = "shmemctl-uid-1:" + hex + ":" + addresses;
    const UniqueId id = UniqueId::parse(text);
    EXPECT_EQ(id.text(), text);
    EXPECT_EQ(id.secret[1], 1);
    EXPECT_EQ(id.secret[15], 0xff);
  }
}

TEST(UniqueId, NamesTheMistake) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "begin"},
      {"hello", "begin"},
      {"shmemctl-uid-1", "version"},
      {"shmemctl-uid-2:" + hex + ":10.0.0.1:1", "version"},
      {"shmemctl-uid-:" + hex + ":10.0.0.1:1", "version"},
      {"shmemctl-uid-1:" + hex, "no addresses"},
      {"shmemctl-uid-1:" + hex + ":", "address 1"},
      {"shmemctl-uid-1:00:10.0.0.1:1", "2 digits"},
      {"shmemctl-uid-1:" + hex.substr(1) + "x:10.0.0.1:1", "0-9 and a-f"},
      {"shmemctl-uid-1:" + hex + ":10.0.0.1:1,", "address 2"},
      {"shmemctl-uid-1:" + hex + ":10.0.0.1:0", "port 0"},
      {"shmemctl-uid-1:" + hex + ":10.0.0.1:1,10.0.0.2:2", "different ports"},
      {"shmemctl-uid-1:" + hex + ":10.0.0.1:1,unix:a", "Unix"},
      {"shmemctl-uid-1:" + hex + ":host:1", "address 1"},
      {"shmemctl-uid-1:" + hex + ":" + std::string(9000, '1'), "longer"}};
  for (const auto& [text, expected] : cases)
    EXPECT_NE(problem_of(text).find(expected), std::string::npos) << text << "\n"
                                                                  << problem_of(text);
  std::string many = "shmemctl-uid-1:" + hex + ":10.0.0.1:1";
  for (int i = 0; i < 32; ++i)
    many += ",10.0.0.1:1";
  EXPECT_NE(problem_of(many).find("more than 32"), std::string::npos);
}

TEST(UniqueId, NeverPrintsTheSecret) {
  EXPECT_EQ(problem_of("shmemctl-uid-1:" + hex + ":10.0.0.1:0").find(hex), std::string::npos);
  const std::string id = "shmemctl-uid-1:" + hex + ":10.0.0.1:1";
  EXPECT_EQ(problem_of(id + id).find(hex), std::string::npos);
  EXPECT_EQ(problem_of("shmemctl-uid-1:" + hex + "0:10.0.0.1:1").find(hex), std::string::npos);
}

TEST(UniqueId, AScopeOfAnotherHostIsLeftOut) {
  const UniqueId id = UniqueId::parse("shmemctl-uid-1:" + hex + ":[fe80::1%nosuchif7]:4711");
  EXPECT_EQ(id.addresses.at(0).text(), "[fe80::1]:4711");
}

} // namespace
} // namespace shmemctl
