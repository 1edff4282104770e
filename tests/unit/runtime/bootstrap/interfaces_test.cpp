#include "src/runtime/bootstrap/interfaces.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace shmemctl {
namespace {

InterfaceAddress make(const std::string& interface, const std::string& address, bool up = true,
                      bool running = true) {
  const SocketAddress parsed = SocketAddress::parse(address);
  return {interface, up, running, is_loopback(parsed), parsed};
}

/// As getifaddrs(3) may list them, best ones not first.
std::vector<InterfaceAddress> machine() {
  return {make("lo", "127.0.0.1:0"),
          make("docker0", "172.17.0.1:0"),
          make("eth0", "10.0.0.1:0"),
          make("eth1", "10.1.0.1:0"),
          make("eth10", "10.10.0.1:0"),
          make("ib0", "10.2.0.1:0", false),
          make("wlan0", "10.3.0.1:0", true, false),
          make("lo", "[::1]:0"),
          make("eth0", "[fe80::1]:0"),
          make("eth0", "[fd00::1]:0")};
}

std::string chosen(const std::string& names, const std::string& family = "") {
  std::string text;
  for (const SocketAddress& address : choose_addresses(machine(), {names, family})) {
    const std::string each = address.text();
    text += (text.empty() ? "" : " ") + each.substr(0, each.rfind(':'));
  }
  return text;
}

TEST(Interfaces, BestFirst) {
  EXPECT_EQ(chosen("", "AF_INET"), "10.0.0.1 10.1.0.1 10.10.0.1 172.17.0.1 10.3.0.1 127.0.0.1");
  EXPECT_EQ(chosen("", "AF_INET6"), "[fd00::1] [fe80::1] [::1]");
  EXPECT_EQ(chosen(""), "10.0.0.1 10.1.0.1 10.10.0.1 [fd00::1] 172.17.0.1 [fe80::1] 10.3.0.1 "
                        "127.0.0.1 [::1]");
}

TEST(Interfaces, NamesInNcclsSyntax) {
  EXPECT_EQ(chosen("eth1", "AF_INET"), "10.1.0.1 10.10.0.1");
  EXPECT_EQ(chosen("=eth1", "AF_INET"), "10.1.0.1");
  EXPECT_EQ(chosen("=eth1,eth0", "AF_INET"), "10.1.0.1 10.0.0.1");
  EXPECT_EQ(chosen("lo,docker", "AF_INET"), "127.0.0.1 172.17.0.1");
  EXPECT_EQ(chosen("^docker,lo,wlan", "AF_INET"), "10.0.0.1 10.1.0.1 10.10.0.1");
  EXPECT_EQ(chosen("^=eth1", "AF_INET"), "10.0.0.1 10.10.0.1 172.17.0.1 10.3.0.1 127.0.0.1");
  EXPECT_EQ(chosen("eth0", "AF_INET6"), "[fd00::1] [fe80::1]");
  EXPECT_EQ(chosen(" eth0 ,,", "AF_INET"), "10.0.0.1");
}

TEST(Interfaces, ListsTheInterfacesWhenNoneMatches) {
  for (const char* names : {"ib0", "=eth", "^eth,lo,docker,wlan", "nosuch"}) {
    try {
      choose_addresses(machine(), {names, ""});
      ADD_FAILURE() << names;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.message().find(names), std::string::npos) << error.message();
      EXPECT_NE(error.message().find("eth10 10.10.0.1"), std::string::npos) << error.message();
      EXPECT_NE(error.message().find("ib0 (down)"), std::string::npos) << error.message();
    }
  }
  EXPECT_THROW(choose_addresses({}, {}), Error);
}

std::string worth_telling(const std::vector<std::string>& addresses) {
  std::string text;
  for (const SocketAddress& address : without_local_only(parse_foreign_addresses(addresses)))
    text += (text.empty() ? "" : " ") + address.text();
  return text;
}

TEST(Interfaces, KeepsAddressesThatOtherHostsCanReach) {
  EXPECT_EQ(worth_telling({"127.0.0.1:1", "10.0.0.1:1", "[fe80::1]:1", "[fd00::1]:1"}),
            "10.0.0.1:1 [fd00::1]:1");
  EXPECT_EQ(worth_telling({"127.0.0.1:1", "[fe80::1]:1"}), "[fe80::1]:1");
  EXPECT_EQ(worth_telling({"127.0.0.1:1", "[::1]:1"}), "127.0.0.1:1 [::1]:1");
  EXPECT_EQ(worth_telling({"169.254.3.4:1", "10.0.0.1:1"}), "10.0.0.1:1");
  EXPECT_EQ(worth_telling({"nonsense", "10.0.0.1:70000"}), "");
}

TEST(Interfaces, KindsOfAddresses) {
  EXPECT_TRUE(is_loopback(SocketAddress::parse("127.1.2.3:1")));
  EXPECT_TRUE(is_loopback(SocketAddress::parse("[::1]:1")));
  EXPECT_FALSE(is_loopback(SocketAddress::parse("128.0.0.1:1")));
  EXPECT_FALSE(is_loopback(SocketAddress::parse("unix:a")));
  EXPECT_TRUE(is_link_local(SocketAddress::parse("169.254.9.9:1")));
  EXPECT_TRUE(is_link_local(SocketAddress::parse("[fe80::9]:1")));
  EXPECT_FALSE(is_link_local(SocketAddress::parse("[fd00::9]:1")));
  EXPECT_TRUE(is_wildcard(SocketAddress::parse("0.0.0.0:1")));
  EXPECT_TRUE(is_wildcard(SocketAddress::parse("[::]:1")));
  EXPECT_TRUE(
      same_host_address(SocketAddress::parse("10.0.0.1:1"), SocketAddress::parse("10.0.0.1:2")));
  EXPECT_FALSE(
      same_host_address(SocketAddress::parse("10.0.0.1:1"), SocketAddress::parse("10.0.0.2:1")));
}

TEST(Interfaces, TheSourceOfAConnection) {
  const std::optional<SocketAddress> source =
      source_address(SocketAddress::parse("127.0.0.1:4711"));
  ASSERT_TRUE(source);
  EXPECT_EQ(source->text(), "127.0.0.1:0");
}

TEST(Interfaces, ThisMachineHasAUsableOne) {
  EXPECT_FALSE(usable_addresses({}).empty());
  EXPECT_TRUE(is_loopback(usable_addresses({"=lo", ""}).front()));
}

} // namespace
} // namespace shmemctl
