// Answers of the kernel's DCB interface.
#include <cstring>
#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string>

#include "src/instruments/doctor/dcb.h"

namespace shmemctl::doctor {

namespace {

template <class T>
std::string bytes_of_value(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string dcb_attribute(int kind, const std::string& content) {
  nlattr header{};
  header.nla_len = static_cast<std::uint16_t>(sizeof header + content.size());
  header.nla_type = static_cast<std::uint16_t>(kind);
  std::string bytes = bytes_of_value(header) + content;
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

std::string dcb_message(int type, const std::string& attributes) {
  dcbmsg command{};
  command.cmd = DCB_CMD_IEEE_GET;
  nlmsghdr header{};
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + sizeof command + attributes.size());
  return bytes_of_value(header) + bytes_of_value(command) + attributes;
}

/// Priority 3 is lossless and has a class of its own, with half of the link.
std::string reply_of_eth0() {
  ieee_pfc pfc{};
  pfc.pfc_cap = 8;
  pfc.pfc_en = 1U << 3;
  ieee_ets ets{};
  ets.prio_tc[3] = 3;
  ets.tc_tsa[0] = ets.tc_tsa[3] = IEEE_8021QAZ_TSA_ETS;
  ets.tc_tx_bw[0] = ets.tc_tx_bw[3] = 50;
  return dcb_message(
      RTM_GETDCB,
      dcb_attribute(DCB_ATTR_IFNAME, std::string("eth0\0", 5)) +
          dcb_attribute(DCB_ATTR_IEEE, dcb_attribute(DCB_ATTR_IEEE_ETS, bytes_of_value(ets)) +
                                           dcb_attribute(DCB_ATTR_IEEE_PFC, bytes_of_value(pfc))));
}

} // namespace

TEST(Dcb, LosslessPrioritiesAndClasses) {
  const auto settings = parse_dcb_reply(reply_of_eth0());
  ASSERT_TRUE(settings.has_value());
  ASSERT_TRUE(settings->lossless_priorities.has_value());
  EXPECT_EQ(priorities_text(*settings->lossless_priorities), "3");
  ASSERT_TRUE(settings->classes.has_value());
  EXPECT_EQ(classes_text(*settings->classes), "0: 50 % for 0 1 2 4 5 6 7; 3: 50 % for 3");
}

TEST(Dcb, OtherMessages) {
  EXPECT_FALSE(parse_dcb_reply(""));
  EXPECT_FALSE(parse_dcb_reply(dcb_message(NLMSG_ERROR, std::string(16, '\0'))));
  const std::string whole = reply_of_eth0();
  for (std::size_t size = 0; size < whole.size(); ++size)
    // the reply contains its own length
    EXPECT_FALSE(parse_dcb_reply(whole.substr(0, size))) << size;
  const auto nothing = parse_dcb_reply(dcb_message(RTM_GETDCB, ""));
  ASSERT_TRUE(nothing.has_value());
  EXPECT_FALSE(nothing->lossless_priorities || nothing->classes);
}

TEST(Dcb, AClassThatIsNoneOfTheEight) {
  DcbSettings::Classes classes;
  classes.of_priority.fill(200);
  EXPECT_EQ(classes_text(classes), "200: unknown for 0 1 2 3 4 5 6 7");
  EXPECT_EQ(priorities_text(0), "none");
  EXPECT_EQ(priorities_text(0x18), "3, 4");
}

TEST(Dcb, AnInterfaceThatDoesNotExist) {
  EXPECT_FALSE(read_dcb("no-such-if0"));
  EXPECT_FALSE(read_dcb(""));
  EXPECT_FALSE(read_dcb(std::string(100, 'x')));
}

} // namespace shmemctl::doctor
