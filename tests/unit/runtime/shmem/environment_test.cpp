#include "src/runtime/shmem/environment.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace shmemctl::api {
namespace {

TEST(SymmetricSize, SpecificationsExamples) {
  EXPECT_EQ(parse_symmetric_size("20m"), 20971520u);
  EXPECT_EQ(parse_symmetric_size("3.1M"), 3250586u);
  EXPECT_EQ(parse_symmetric_size("20kk"), 20480u);
  EXPECT_EQ(parse_symmetric_size(".5m"), parse_symmetric_size("0.5m"));
}

TEST(SymmetricSize, EveryScale) {
  EXPECT_EQ(parse_symmetric_size("0"), 0u);
  EXPECT_EQ(parse_symmetric_size("4096"), 4096u);
  EXPECT_EQ(parse_symmetric_size("1k"), 1u << 10);
  EXPECT_EQ(parse_symmetric_size("1K"), 1u << 10);
  EXPECT_EQ(parse_symmetric_size("1g"), 1u << 30);
  EXPECT_EQ(parse_symmetric_size("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_symmetric_size("1t"), std::uint64_t{1} << 40);
  EXPECT_EQ(parse_symmetric_size("1T and more"), std::uint64_t{1} << 40);
  EXPECT_EQ(parse_symmetric_size("1e6"), 1000000u);
  EXPECT_EQ(parse_symmetric_size("1.0001"), 2u);                          // rounded up
  EXPECT_EQ(parse_symmetric_size("9007199254740993"), 9007199254740993u); // beyond a double
}

TEST(SymmetricSize, RejectsMalformedTexts) {
  for (const char* text : {"", " 1", "-1", "+1", "k", "1x", "1 k", "0x10", "inf", "nan", ".",
                           "1e9999", "4611686018427387904", "99999999t", "1\t"})
    EXPECT_FALSE(parse_symmetric_size(text)) << text;
  EXPECT_FALSE(parse_symmetric_size(std::string("1\0", 2)));
}

TEST(SpecifiedOptions, StrongerNamesWin) {
  EXPECT_TRUE(specified_options({}).empty());
  EXPECT_EQ(specified_options({{"SMA_SYMMETRIC_SIZE", "8k"}}).at("SYMMETRIC_SIZE"), "8192");
  EXPECT_EQ(specified_options({{"SMA_SYMMETRIC_SIZE", "1m"}, {"SHMEM_SYMMETRIC_SIZE", "2m"}})
                .at("SYMMETRIC_SIZE"),
            "2097152");
  const Environment ours = {{"SHMEMCTL_SYMMETRIC_SIZE", "3m"}, {"SHMEM_SYMMETRIC_SIZE", "2m"}};
  EXPECT_EQ(Options(ours, specified_options(ours)).size_bytes("SYMMETRIC_SIZE"), 3u << 20);
  const Environment nvshmem = {{"NVSHMEM_SYMMETRIC_SIZE", "3m"}, {"SHMEM_SYMMETRIC_SIZE", "2m"}};
  EXPECT_EQ(Options(nvshmem, specified_options(nvshmem)).size_bytes("SYMMETRIC_SIZE"), 2u << 20);
}

TEST(SpecifiedOptions, AnEmptyVariableIsNoneAndAnEmptyHeapIsSmall) {
  EXPECT_TRUE(specified_options({{"SHMEM_SYMMETRIC_SIZE", ""}}).empty());
  EXPECT_EQ(specified_options({{"SHMEM_SYMMETRIC_SIZE", "0"}}).at("SYMMETRIC_SIZE"), "4096");
}

TEST(SpecifiedOptions, Debug) {
  EXPECT_EQ(specified_options({{"SHMEM_DEBUG", ""}}).at("LOG_LEVEL"), "debug");
  EXPECT_TRUE(specified_options({{"SHMEM_DEBUG", "1"}, {"SHMEMCTL_LOG_LEVEL", "error"}}).empty());
  EXPECT_TRUE(asked_for({{"SMA_INFO", ""}}, "INFO"));
  EXPECT_FALSE(asked_for({{"SMA_INFO", ""}}, "VERSION"));
}

TEST(SpecifiedOptions, BadSizeNamesTheVariable) {
  try {
    specified_options({{"SHMEM_SYMMETRIC_SIZE", "a lot"}});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.message().find("SHMEM_SYMMETRIC_SIZE"), std::string::npos);
    EXPECT_NE(error.message().find("a lot"), std::string::npos);
  }
}

} // namespace
} // namespace shmemctl::api
