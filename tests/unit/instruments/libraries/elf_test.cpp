// ELF files of every length: what they say, and that nothing is read beyond them.
#include <algorithm>
#include <gtest/gtest.h>

#include "src/instruments/libraries/elf.h"
#include "tests/support/elf_image.h"

namespace shmemctl::libraries {
namespace {

using fake::ElfImage;

ReadAt reader_of_bytes(const std::string& bytes) {
  return [&bytes](std::uint64_t offset, std::size_t count) {
    return offset >= bytes.size() ? std::string() : bytes.substr(offset, count);
  };
}

ElfImage full_image() {
  ElfImage image;
  image.soname = "libuser.so.1";
  image.defined = {"USER_1.0", "USER_1.1"};
  image.needed = {{"libmlx5.so.1", {"MLX5_1.24", "MLX5_1.25"}}, {"libc.so.6", {"GLIBC_2.28"}}};
  image.texts = {"NCCL version 2.21.5+cuda12.4", "NCCL_DEBUG"};
  return image;
}

TEST(Elf, WhatAFileSays) {
  const std::string bytes = full_image().bytes();
  const ElfFacts facts = read_elf(reader_of_bytes(bytes));
  EXPECT_EQ(facts.problem, "");
  EXPECT_EQ(facts.soname, "libuser.so.1");
  EXPECT_EQ(facts.needed, (std::vector<std::string>{"libmlx5.so.1", "libc.so.6"}));
  EXPECT_EQ(facts.defined_versions, (std::vector<std::string>{"USER_1.0", "USER_1.1"}));
  ASSERT_EQ(facts.needed_versions.size(), 2U);
  EXPECT_EQ(facts.needed_versions[0].file, "libmlx5.so.1");
  EXPECT_EQ(facts.needed_versions[0].versions,
            (std::vector<std::string>{"MLX5_1.24", "MLX5_1.25"}));
  std::vector<std::string> texts;
  each_text(reader_of_bytes(bytes), facts.texts, 3, 1U << 20,
            [&texts](std::string_view text) { texts.emplace_back(text); });
  EXPECT_NE(std::find(texts.begin(), texts.end(), "NCCL version 2.21.5+cuda12.4"), texts.end());
  EXPECT_NE(std::find(texts.begin(), texts.end(), "libuser.so.1"), texts.end()); // of .dynstr
}

TEST(Elf, CutAtAnyByte) {
  const std::string whole = full_image().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    EXPECT_NE(read_elf(reader_of_bytes(bytes)).problem, "") << size; // headers are at the end
  }
}

TEST(Elf, AnyByteChanged) {
  const std::string whole = full_image().bytes();
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = value;
      const ElfFacts facts = read_elf(reader_of_bytes(bytes));
      std::size_t count = 0;
      each_text(reader_of_bytes(bytes), facts.texts, 3, 1U << 20,
                [&count](std::string_view) { ++count; });
      EXPECT_LE(count, whole.size());
    }
}

TEST(Elf, TextsAcrossPieces) {
  constexpr std::size_t piece = 1U << 20;
  std::string bytes(3 * piece, 'x');
  bytes[piece - 3] = '\0';
  bytes.replace(piece - 2, 9, std::string("NCCL_NET\0", 9));
  bytes.back() = '\0';
  std::vector<std::string> texts;
  each_text(reader_of_bytes(bytes), {{0, bytes.size()}}, 3, bytes.size(),
            [&texts](std::string_view text) { texts.emplace_back(text); });
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_EQ(texts[0].size(), 4096U); // the end of a long one
  EXPECT_EQ(texts[1], "NCCL_NET");
  EXPECT_EQ(texts[2].size(), 4096U);
}

TEST(Elf, OtherFiles) {
  EXPECT_EQ(read_elf(reader_of_bytes("#!/bin/sh")).problem, "not an ELF file");
  EXPECT_EQ(read_elf(reader_of_bytes("")).problem, "not an ELF file");
  std::string bytes = full_image().bytes();
  bytes[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(read_elf(reader_of_bytes(bytes)).problem, "not a 64-bit little-endian ELF file");
}

} // namespace
} // namespace shmemctl::libraries
