#include "src/base/wire_bytes.h"

#include <gtest/gtest.h>

namespace shmemctl {
namespace {

using namespace std::literals;

enum class Colour : std::uint8_t { red, green, blue };

TEST(WireBytes, LittleEndianAndLengthsBeforeTexts) {
  WireWriter writer;
  writer.number(std::uint32_t{0x01020304});
  writer.number(std::int16_t{-2});
  writer.number(Colour::blue);
  writer.flag(true);
  writer.text("abcdef", 4);
  writer.text<std::uint8_t>("", 4);
  writer.array(std::array<std::uint8_t, 2>{7, 8});
  writer.bytes("!");
  EXPECT_EQ(writer.take(), "\x04\x03\x02\x01\xfe\xff\x02\x01\x04\0abcd\0\x07\x08!"s);
}

TEST(WireBytes, WhatWasWrittenIsRead) {
  WireWriter writer;
  writer.number(std::int64_t{-3});
  writer.number(Colour::green);
  writer.flag(false);
  writer.text("text", 9);
  writer.array(std::array<std::uint8_t, 3>{1, 0, 255});
  const std::string bytes = writer.take();
  WireReader reader(bytes);
  EXPECT_EQ(reader.number<std::int64_t>(), -3);
  EXPECT_EQ(reader.choice(Colour::blue), Colour::green);
  EXPECT_FALSE(reader.flag());
  EXPECT_EQ(reader.text(9), "text");
  EXPECT_FALSE(reader.at_end());
  EXPECT_EQ(reader.array<3>(), (std::array<std::uint8_t, 3>{1, 0, 255}));
  EXPECT_TRUE(reader.good() && reader.at_end());
}

TEST(WireBytes, NothingIsReadBeyondTheEnd) {
  const std::string bytes = "\x05\x06\x07";
  WireReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint32_t>(), 0u);
  EXPECT_FALSE(reader.good());
  EXPECT_EQ(reader.number<std::uint8_t>(), 0u) << "nothing comes after what was missing";
  EXPECT_EQ(reader.bytes(1), "");
  EXPECT_EQ(reader.array<2>(), (std::array<std::uint8_t, 2>{}));
}

TEST(WireBytes, EveryLimitIsKept) {
  const std::string text_of_3 = "\x03\0abc"s;
  EXPECT_EQ(WireReader(text_of_3).text(3), "abc");
  for (const auto& [bytes, most] : {std::pair{text_of_3, 2}, {"\x04\0abc"s, 9}, {"\x03"s, 9}}) {
    WireReader reader(bytes);
    EXPECT_EQ(reader.text(static_cast<std::size_t>(most)), "");
    EXPECT_FALSE(reader.good());
  }
  WireReader flag("\x02"), choice("\x03"), count("\x09");
  flag.flag();
  EXPECT_EQ(choice.choice(Colour::blue), Colour::red);
  EXPECT_EQ(count.count<std::uint8_t>(8), 0u);
  EXPECT_FALSE(flag.good() || choice.good() || count.good());
}

} // namespace
} // namespace shmemctl
