#include "src/base/archive.h"

#include <gtest/gtest.h>
#include <random>

#include "tests/support/expect_error.h"

namespace shmemctl {
namespace {

using namespace std::literals;

enum class Colour : std::uint8_t { red, green, blue };

struct Nic {
  std::string name;
  int port = 0;
  bool operator==(const Nic&) const = default;
};

void serialize(Archive& archive, Nic& nic) {
  archive(nic.name, nic.port);
}

struct Message {
  bool there = false;
  Colour colour = Colour::red;
  std::int64_t number = 0;
  double time_ms = 0;
  float share = 0;
  std::string text;
  std::vector<Nic> nics;
  std::array<std::uint16_t, 2> pair = {};
  std::vector<std::pair<std::string, unsigned>> counts;
  std::optional<Nic> best;
  std::optional<int> none;
  bool operator==(const Message&) const = default;
};

void serialize(Archive& archive, Message& message) {
  archive(message.there);
  archive.choice(message.colour, Colour::blue);
  archive(message.number, message.time_ms, message.share);
  archive.text(message.text, 8);
  archive(message.nics, message.pair, message.counts, message.best, message.none);
}

Message sample() {
  Message message;
  message.there = true;
  message.colour = Colour::blue;
  message.number = -7;
  message.time_ms = 1.25;
  message.share = 0.1F;
  message.text = "a\0b"s;
  message.nics = {{"mlx5_0", 1}, {"", -2}};
  message.pair = {1, 65535};
  message.counts = {{"put", 3U}, {"get", 4U}};
  message.best = Nic{"mlx5_1", 2};
  return message;
}

TEST(Archive, IsLittleEndianWithLengthsFirst) {
  EXPECT_EQ(to_bytes(std::uint32_t{0x01020304}), "\x04\x03\x02\x01"s);
  EXPECT_EQ(to_bytes("ab"s), "\2\0\0\0ab"s);
  EXPECT_EQ(to_bytes(std::vector<std::uint8_t>{7, 8}), "\2\0\0\0\7\x08"s);
  EXPECT_EQ(to_bytes(std::optional<std::uint8_t>(5)), "\1\5"s);
  EXPECT_EQ(to_bytes(std::optional<std::uint8_t>()), "\0"s);
  EXPECT_EQ(to_bytes(1.0), "\0\0\0\0\0\0\xf0\x3f"s);
}

TEST(Archive, WhatWasWrittenIsRead) {
  const Message message = sample();
  EXPECT_EQ(from_bytes<Message>(to_bytes(message)), message);
  EXPECT_EQ(from_bytes<Message>(to_bytes(Message())), Message());
}

TEST(Archive, LongTextsAreCutWhenWrittenAndRefusedWhenRead) {
  Message message;
  message.text = "123456789";
  EXPECT_EQ(from_bytes<Message>(to_bytes(message)).value().text, "12345678");
  Archive archive("\3\0\0\0abc"sv);
  std::string text;
  archive.text(text, 2);
  EXPECT_FALSE(archive.good());
  EXPECT_EQ(text, "");
}

TEST(Archive, ReadsTheWholeOrNothing) {
  const std::string bytes = to_bytes(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(from_bytes<Message>(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(from_bytes<Message>(bytes + "x"));
}

TEST(Archive, RefusesWhatNoTypeHas) {
  EXPECT_FALSE(from_bytes<bool>("\2"sv));
  EXPECT_FALSE(from_bytes<std::optional<int>>("\2\0\0\0\0"sv));
  Archive archive("\3"sv);
  Colour colour = Colour::green;
  archive.choice(colour, Colour::blue);
  EXPECT_FALSE(archive.good());
  EXPECT_EQ(colour, Colour::red);
}

/// A count that the bytes cannot hold allocates nothing.
TEST(Archive, CountsAreBoundedByTheBytes) {
  EXPECT_FALSE(from_bytes<std::vector<Nic>>("\xff\xff\xff\xff"sv));
  EXPECT_FALSE(from_bytes<std::vector<Nic>>("\xff\xff\xff\x7f\0\0\0\0\0\0\0\0"sv));
  EXPECT_FALSE(from_bytes<std::string>("\xff\xff\xff\xff..."sv));
}

TEST(Archive, RequirementsAreForReading) {
  Archive writing;
  writing.require(false);
  std::uint8_t value = 3;
  writing(value);
  const std::string bytes = writing.take();
  Archive reading(bytes);
  reading(value);
  EXPECT_TRUE(reading.complete());
  reading.require(value == 4);
  EXPECT_FALSE(reading.complete());
}

TEST(Archive, SurvivesDamage) {
  std::mt19937 random(5);
  const std::string good = to_bytes(sample());
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (unsigned change = 0; change <= random() % 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (const std::optional<Message> read = from_bytes<Message>(bytes)) {
      EXPECT_EQ(to_bytes(*read), bytes);
    }
  }
}

TEST(Archive, AMalformedMessageNamesItsPe) {
  EXPECT_EQ(value_of_pe<int>(to_bytes(5), 3, "phases"), 5);
  test::expect_error(ExitCode::unavailable, {"PE 3: cannot read its phases: malformed message"},
                     [] { value_of_pe<int>("x", 3, "phases"); });
}

} // namespace
} // namespace shmemctl
