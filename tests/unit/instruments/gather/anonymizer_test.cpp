// Replacements of names and addresses: the same in every form, and of the same kind.
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "src/base/text.h"
#include "src/instruments/gather/anonymizer.h"

namespace shmemctl::gather {
namespace {

constexpr Secret key{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
constexpr Secret other_key{16, 15, 14, 13};

std::string address_digits(const std::string& text) {
  std::string digits;
  for (const char byte : text)
    if (byte != ':' && byte != '-')
      digits += byte;
  return digits;
}

TEST(Anonymizer, NamesAreReplacedWhereTheyAreWhole) {
  Anonymizer names(key);
  names.add_host("gpu-node-07.cluster.example.org");
  names.add_host("head");
  names.add_user("ann");
  EXPECT_EQ(names.text("gpu-node-07 gpu-node-07.cluster.example.org gpu-node-071"),
            "host1 host1 gpu-node-071");
  EXPECT_EQ(names.text("/home/ann/x ann_1 anna head:"), "/home/user1/x ann_1 anna host2:");
  EXPECT_EQ(names.path("/home/ann/lib/libann.so"), "/home/user1/lib/libann.so");
  EXPECT_EQ(names.text("gpu-node-07 HCA-1"), "host1 HCA-1");
}

TEST(Anonymizer, NamesThatEveryMachineHasStay) {
  Anonymizer names(key);
  for (const char* user : {"root", "cuda", "nobody", "", "x"})
    names.add_user(user);
  for (const char* host : {"localhost", "localhost.localdomain", "ip6-loopback", "", "a"})
    names.add_host(host);
  const std::string text = "/usr/local/cuda root@localhost ip6-loopback a x";
  EXPECT_EQ(names.text(text), text);
}

TEST(Anonymizer, TheSameKeyMakesTheSameAndAnotherOneOthers) {
  Anonymizer first(key), second(key), third(other_key);
  const std::string text = "0c:42:a1:65:7a:36 10.1.2.3 2001:db8::1 0x0c42a10300657a36";
  EXPECT_EQ(first.text(text), second.text(text));
  EXPECT_EQ(first.text(text), first.text(text));
  EXPECT_NE(first.text(text), third.text(text));
  for (const char* original : {"65:7a:36", "10.1.2.3", "657a36"})
    EXPECT_EQ(first.text(text).find(original), std::string::npos);
}

TEST(Anonymizer, AMacAddressIsTheSameInAllForms) {
  Anonymizer names(key);
  const std::string mac = names.text("0c:42:a1:65:7a:36");
  ASSERT_EQ(mac.size(), 17U);
  EXPECT_NE(mac, "0c:42:a1:65:7a:36");
  EXPECT_EQ(names.text("0C:42:A1:65:7A:36").size(), 17U);
  EXPECT_EQ(lower(names.text("0C:42:A1:65:7A:36")), mac);
  EXPECT_EQ(names.path("enx0c42a1657a36"), "enx" + address_digits(mac));
  EXPECT_EQ(names.path("rocex0c42a1657a36"), "rocex" + address_digits(mac));
  // EUI-64, and with the bit of local addresses inverted in a link-local address.
  const std::string digits = address_digits(mac);
  EXPECT_EQ(address_digits(names.text("0c42:a1ff:fe65:7a36")),
            digits.substr(0, 6) + "fffe" + digits.substr(6));
  const std::string gid = names.text("fe80:0000:0000:0000:0e42:a1ff:fe65:7a36");
  EXPECT_TRUE(starts_with(gid, "fe80:0000:0000:0000:")) << gid;
  EXPECT_EQ(address_digits(gid).substr(18), digits.substr(2, 4) + "fffe" + digits.substr(6));
  EXPECT_EQ(parse_integer(address_digits(gid).substr(16, 2), 16).value_or(0),
            parse_integer(digits.substr(0, 2), 16).value_or(0) ^ 2);
  // IPoIB: four bytes, then the GID.
  const std::string ipoib =
      names.text("80:00:02:08:fe:80:00:00:00:00:00:00:0e:42:a1:ff:fe:65:7a:36");
  EXPECT_EQ(address_digits(ipoib), "80000208" + address_digits(gid));
}

TEST(Anonymizer, AnIpv4AddressIsTheSameInAGidOfRoce) {
  Anonymizer names(key);
  const std::uint32_t changed = names.ipv4(0x0a010203);
  EXPECT_EQ(changed >> 24, 10U); // still private
  EXPECT_NE(changed, 0x0a010203U);
  char digits[16];
  std::snprintf(digits, sizeof digits, "%04x:%04x", changed >> 16, changed & 0xffff);
  EXPECT_EQ(names.text("0000:0000:0000:0000:0000:ffff:0a01:0203"),
            std::string("0000:0000:0000:0000:0000:ffff:") + digits);
  char dotted[20];
  std::snprintf(dotted, sizeof dotted, "%u.%u.%u.%u", changed >> 24, changed >> 16 & 255,
                changed >> 8 & 255, changed & 255);
  EXPECT_EQ(names.text("10.1.2.3"), dotted);
  EXPECT_EQ(names.text("tcp://10.1.2.3:29500,[::ffff:10.1.2.3]"),
            std::string("tcp://") + dotted + ":29500,[::ffff:" + dotted + "]");
}

TEST(Anonymizer, AGuidIsTheSameInAllForms) {
  Anonymizer names(key);
  const std::string guid = names.text("0c42:a103:0065:7a36");
  EXPECT_NE(guid, "0c42:a103:0065:7a36");
  EXPECT_EQ(names.text("0x0c42a10300657a36"), "0x" + address_digits(guid));
  EXPECT_EQ(names.text("0c:42:a1:03:00:65:7a:36").size(), 23U);
  EXPECT_EQ(address_digits(names.text("0c:42:a1:03:00:65:7a:36")), address_digits(guid));
  EXPECT_EQ(names.text("fe80:0000:0000:0000:0c42:a103:0065:7a36"), "fe80:0000:0000:0000:" + guid);
  EXPECT_EQ(names.path("ibx0c42a10300657a36"), "ibx" + address_digits(guid));
}

TEST(Anonymizer, KindsOfAddressesStay) {
  Anonymizer names(key);
  for (const char* same :
       {"127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.251", "::1", "::", "ff02::1",
        "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "33:33:00:00:00:01", "0000:0000:0000:0000",
        "0000:0000:0000:0000:0000:0000:0000:0000", "fe80:0000:0000:0000:0000:0000:0000:0001"})
    EXPECT_EQ(names.text(same), same);
  const struct {
    const char* address;
    const char* begins;
  } kinds[] = {
      {"192.168.7.9", "192.168."},  {"169.254.3.4", "169.254."}, {"172.20.1.1", "172."},
      {"10.200.1.1", "10."},        {"100.100.1.1", "100."},     {"fe80::a1b2:c3d4", "fe80::"},
      {"fd12:3456::9:1:7:5", "fd"}, {"8.8.8.8", "240."},         {"2001:db8::a:b:c:d", "2"}};
  for (const auto& kind : kinds) {
    const std::string changed = names.text(kind.address);
    EXPECT_TRUE(starts_with(changed, kind.begins)) << kind.address << " -> " << changed;
    EXPECT_NE(changed, kind.address);
  }
  const std::uint32_t private_12 = names.ipv4(0xac140101);
  EXPECT_EQ(private_12 >> 20, 0xac1U);
}

TEST(Anonymizer, NetworksStayNetworks) {
  Anonymizer names(key);
  std::set<std::uint32_t> seen;
  for (std::uint32_t host = 0; host < 256; ++host) {
    const std::uint32_t changed = names.ipv4(0x0a010200 | host);
    EXPECT_EQ(changed >> 8, names.ipv4(0x0a010203) >> 8);
    EXPECT_TRUE(seen.insert(changed).second);
  }
  EXPECT_NE(names.ipv4(0x0a010303) >> 8, names.ipv4(0x0a010203) >> 8);
  EXPECT_EQ(names.ipv4(0x0a010303) >> 16, names.ipv4(0x0a010203) >> 16);
  EXPECT_NE(names.ipv4(0x08080808) >> 16, names.ipv4(0x09090909) >> 16);
}

TEST(Anonymizer, AnUuidAndABeginningOfItStayOne) {
  Anonymizer names(key);
  const std::string whole = names.text("GPU-5a1c9d3e-1b2c-3d4e-5f60-718293a4b5c6");
  EXPECT_EQ(whole.size(), 40U);
  EXPECT_TRUE(starts_with(whole, "GPU-"));
  EXPECT_EQ(whole.find("5a1c9d3e"), std::string::npos);
  EXPECT_EQ(names.text("GPU-5a1c9d3e"), whole.substr(0, 12));
  EXPECT_EQ(names.text("5a1c9d3e-1b2c-3d4e-5f60-718293a4b5c6"), whole.substr(4));
  EXPECT_EQ(names.text("\"GPU-5a1c9d3e-1b2c-3d4e-5f60-718293a4b5c6\","), "\"" + whole + "\",");
}

TEST(Anonymizer, WhatOnlyLooksLikeAnAddressStays) {
  Anonymizer names(key);
  for (const char* text : {"0000:18:00.0",
                           "../../../devices/pci0000:15/0000:15:01.0/0000:18:00.0",
                           "12:34:56",
                           "4: ACTIVE",
                           "libcublas.so.12.4.5.8",
                           "MLNX_OFED_LINUX-5.8-3.0.7.0",
                           "550.54.15",
                           "/opt/nvshmem/3.0.6.0/lib",
                           "version 9.1.0.70",
                           "1.2.3.4.5",
                           "256.1.1.1",
                           "28.39.1002",
                           "00000000,00ffffff",
                           "7f3c1a000000-7f3c1a200000 r-xp 00000000 fd:01 4711  /usr/lib/x.so",
                           "0xffff",
                           "0x000000000000",
                           "socket:[4711]",
                           "mnt:[4026531841]",
                           "std::string",
                           "GPU-0",
                           "Uid:\t1000\t1000",
                           "[::]x",
                           "MemTotal: 16384 kB",
                           "CapEff:\t000001ffffffffff"})
    EXPECT_EQ(names.text(text), text);
}

TEST(Anonymizer, AnyBytesAreSafe) {
  Anonymizer names(key);
  names.add_user("ann");
  std::string bytes;
  for (int round = 0; round < 4; ++round)
    for (int byte = 0; byte < 256; ++byte)
      bytes += static_cast<char>(byte);
  bytes += std::string(3000, ':') + std::string(3000, 'f') + std::string(3000, '0') + ":ann";
  EXPECT_FALSE(names.text(bytes).empty());
  EXPECT_EQ(names.text(""), "");
}

} // namespace
} // namespace shmemctl::gather
