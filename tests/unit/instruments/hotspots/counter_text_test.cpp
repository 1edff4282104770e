// Texts of counters: a value or a reason, never an invented value.
#include "src/instruments/hotspots/counters.h"

#include <gtest/gtest.h>

using namespace shmemctl;

namespace {

TEST(CounterText, WholeNumbersWithBlanksAround) {
  EXPECT_EQ(parse_counter_text("0\n").value, 0u);
  EXPECT_EQ(parse_counter_text("  42 \n").value, 42u);
  EXPECT_EQ(parse_counter_text("9223372036854775807").value, 9223372036854775807u);
  EXPECT_EQ(parse_counter_text("42").problem, "");
}

TEST(CounterText, WhatIsNoCountSaysWhatItReads) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is empty"},
      {" \n", "is empty"},
      {"N/A (no PMA)\n", "reads \"N/A (no PMA)\""},
      {"-1", "reads \"-1\""},
      {"12 packets", "reads \"12 packets\""},
      {"0x10", "reads \"0x10\""},
      {"1.5", "reads \"1.5\""},
      {"18446744073709551615",
       "reads \"18446744073709551615\", which is -1: the driver does not count this"},
      {"9223372036854775808", "reads \"9223372036854775808\", larger than any counter value"},
      {"99999999999999999999", "reads \"99999999999999999999\", larger than any counter value"},
      {"\x01", "reads \"\\x01\""}};
  for (const auto& [text, problem] : cases) {
    EXPECT_EQ(parse_counter_text(text).value, std::nullopt) << text;
    EXPECT_EQ(parse_counter_text(text).problem, problem);
  }
}

TEST(CounterText, EthtoolsLines) {
  const auto counters = parse_ethtool_text("NIC statistics:\n"
                                           "     rx_packets: 5\n"
                                           "     rx_prio0_pause: 7\r\n"
                                           "no colon\n"
                                           "     [0]: rx_queue_0: 9\n"
                                           "     bad: n/a\n"
                                           "     rx_packets: 6\n"
                                           ": 4\n");
  ASSERT_EQ(counters.size(), 3u);
  EXPECT_EQ(counters[0].name, "rx_packets");
  EXPECT_EQ(counters[0].text.value, 5u);
  EXPECT_EQ(counters[1].name, "rx_prio0_pause");
  EXPECT_EQ(counters[1].text.value, 7u);
  EXPECT_EQ(counters[2].name, "bad");
  EXPECT_EQ(counters[2].text.value, std::nullopt);
}

} // namespace
