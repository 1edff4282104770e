// The small file that stands for a library says the same about itself.
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "src/instruments/gather/elf_excerpt.h"
#include "tests/support/elf_image.h"

namespace shmemctl::gather {
namespace {

libraries::ReadAt reader_of_bytes(const std::string& bytes) {
  return [&bytes](std::uint64_t offset, std::size_t count) {
    return offset >= bytes.size() ? std::string() : bytes.substr(offset, count);
  };
}

std::vector<std::string> texts_of(const std::string& bytes) {
  std::vector<std::string> texts;
  const libraries::ReadAt read_at = reader_of_bytes(bytes);
  libraries::each_text(read_at, libraries::read_elf(read_at).texts, 2, 1U << 20,
                       [&texts](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

bool has_text(const std::vector<std::string>& texts, const std::string& wanted) {
  for (const std::string& text : texts)
    if (text == wanted)
      return true;
  return false;
}

TEST(ElfExcerpt, SaysTheSameAndHoldsNothingElse) {
  fake::ElfImage image;
  image.soname = "libnccl.so.2";
  image.defined = {"NCCL_2.0", "NCCL_2.1"};
  image.needed = {{"libibverbs.so.1", {"IBVERBS_1.1", "IBVERBS_1.14"}},
                  {"libc.so.6", {"GLIBC_2.28"}}};
  image.texts = {"NCCL_IB_HCA",
                 "NCCL version 2.21.5+cuda12.4 built by ann",
                 "no such variable NCCL_OLD",
                 "MLX5_1.25",
                 "a sentence that ends well.",
                 "_ZN4nccl6secretEv",
                 std::string(200, 'x')};
  const std::string whole = image.bytes();
  const libraries::LibraryKind* kind = libraries::library_kind("/usr/lib/libnccl.so.2");
  ASSERT_NE(kind, nullptr);
  const std::string excerpt = elf_excerpt(reader_of_bytes(whole), kind);
  const libraries::ElfFacts before = libraries::read_elf(reader_of_bytes(whole)),
                            after = libraries::read_elf(reader_of_bytes(excerpt));
  EXPECT_EQ(after.problem, "");
  EXPECT_EQ(after.soname, before.soname);
  EXPECT_EQ(after.build_id, before.build_id);
  EXPECT_EQ(after.needed, before.needed);
  EXPECT_EQ(after.defined_versions, before.defined_versions);
  ASSERT_EQ(after.needed_versions.size(), before.needed_versions.size());
  for (std::size_t i = 0; i < before.needed_versions.size(); ++i) {
    EXPECT_EQ(after.needed_versions[i].file, before.needed_versions[i].file);
    EXPECT_EQ(after.needed_versions[i].versions, before.needed_versions[i].versions);
  }
  const std::vector<std::string> texts = texts_of(excerpt);
  for (const char* kept : {"NCCL_IB_HCA", "NCCL version 2.21.5+cuda12.4", " NCCL_OLD", "MLX5_1.25"})
    EXPECT_TRUE(has_text(texts, kept)) << kept;
  for (const char* word : {"built by ann", "no such variable", "a sentence", "_ZN", "xxxxx"})
    EXPECT_EQ(excerpt.find(word), std::string::npos) << word;
}

TEST(ElfExcerpt, TextsThatNobodyReadsAreLeftOut) {
  fake::ElfImage image;
  image.soname = "libcuda.so.1";
  image.texts = {"CUDA_VISIBLE_DEVICES"};
  const std::string whole = image.bytes();
  const std::string excerpt = elf_excerpt(reader_of_bytes(whole), nullptr);
  EXPECT_EQ(libraries::read_elf(reader_of_bytes(excerpt)).soname, "libcuda.so.1");
  EXPECT_EQ(excerpt.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
}

TEST(ElfExcerpt, WhatIsNoElfFileHasNone) {
  for (const std::string& bytes : {std::string(), std::string("text"), std::string(100, '\0')})
    EXPECT_EQ(elf_excerpt(reader_of_bytes(bytes), nullptr), "");
}

} // namespace
} // namespace shmemctl::gather
