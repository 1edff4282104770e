// Which addresses of other hosts a lifeline tries: no socket is opened.
#include "src/runtime/lifeline_addresses.h"

#include <gtest/gtest.h>

#include "src/base/text.h"

namespace shmemctl::lifeline {
namespace {

using Texts = std::vector<std::string>;

/// As on a host with the interfaces eth0 and eth1: a link-local address is tried through both.
std::vector<SocketAddress> through_two_interfaces(const SocketAddress& address) {
  if (!is_link_local(address) || address.family() != AF_INET6)
    return {address};
  const std::string text = address.text();
  const std::string host = text.substr(0, std::min(text.find('%'), text.find(']')));
  std::vector<SocketAddress> forms;
  for (const char* scope : {"%2", "%3"})
    forms.push_back(SocketAddress::parse(host + scope + text.substr(text.find(']'))));
  return forms;
}

Texts tried(const Texts& offered, bool same_network = false) {
  Texts texts;
  for (const SocketAddress& address :
       addresses_to_try(offered, same_network, through_two_interfaces))
    texts.push_back(address.text());
  return texts;
}

/// Its scope is the name of an interface that only the other host has.
TEST(LifelineAddresses, AForeignLinkLocalAddressDoesNotEndTheJob) {
  EXPECT_EQ(tried({"10.77.0.2:5000", "[fe80::7c4c:1%enp5s0np0]:5000"}), Texts{"10.77.0.2:5000"});
  EXPECT_EQ(tried({"[fe80::7c4c:1%veth8f3a1c]:5000", "[fd77::2]:5000"}), Texts{"[fd77::2]:5000"});
}

TEST(LifelineAddresses, LinkLocalIsTriedThroughEachInterfaceIfThereIsNothingElse) {
  const Texts forms = tried({"[fe80::1%enp5s0np0]:5000", "[::1]:5000"});
  ASSERT_EQ(forms.size(), 2U);
  for (const std::string& form : forms)
    EXPECT_TRUE(starts_with(form, "[fe80::1%")) << form;
}

TEST(LifelineAddresses, LoopbackLeadsToNoOtherHost) {
  EXPECT_EQ(tried({"10.77.0.2:5000", "127.0.0.1:5000", "[::1]:5000"}), Texts{"10.77.0.2:5000"});
  EXPECT_EQ(tried({"127.0.0.1:5000"}), Texts{});
  EXPECT_EQ(tried({"127.0.0.1:5000"}, true), Texts{"127.0.0.1:5000"});
  EXPECT_FALSE(reachable_from_elsewhere({"127.0.0.1:5000", "unix:a"}));
  EXPECT_TRUE(reachable_from_elsewhere({"127.0.0.1:5000", "[fe80::1%nosuch0]:1"}));
}

TEST(LifelineAddresses, WhatIsNoAddressIsLeftOut) {
  EXPECT_EQ(tried({"nonsense", "[fe80::1%]:x", "10.0.0.1:99999", "10.77.0.2:5000"}),
            Texts{"10.77.0.2:5000"});
  EXPECT_FALSE(reachable_from_elsewhere({"nonsense"}));
}

TEST(LifelineAddresses, TheOrderIsThatOfThePeThatOffersThem) {
  EXPECT_EQ(tried({"10.0.0.2:1", "172.17.0.1:2", "[fd77::2]:3"}),
            (Texts{"10.0.0.2:1", "172.17.0.1:2", "[fd77::2]:3"}));
}

} // namespace
} // namespace shmemctl::lifeline
