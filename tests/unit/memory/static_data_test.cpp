// StaticDataRegion in programs of every shape, compiled here and run as two PEs.
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test_paths.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

struct Output {
  int status = -1;
  std::string text;
};

Output run(const std::string& command) {
  Output output;
  std::FILE* pipe = ::popen(("( " + command + " ) 2>&1").c_str(), "re");
  if (!pipe)
    return output;
  char block[4096];
  while (std::fgets(block, sizeof block, pipe))
    output.text += block;
  output.status = ::pclose(pipe);
  return output;
}

/// The library's flags must be the programs'.
std::string sanitizer_flags() {
#if defined(__SANITIZE_ADDRESS__)
  return " -fsanitize=address,undefined";
#elif defined(__SANITIZE_THREAD__)
  return " -fsanitize=thread";
#else
  return "";
#endif
}

struct Shape {
  const char* name;
  const char* source;
  const char* flags;
  bool statically_linked;
};

class Programs : public testing::TestWithParam<Shape> {
protected:
  static std::string data() { return std::string(SHMEMCTL_TEST_DATA) + "/static_data/"; }
  static std::string library() {
    return std::filesystem::path(SHMEMCTL_BINARY).parent_path().string() + "/libshmemctl_core.a";
  }

  /// The common part is compiled once for all shapes.
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    const std::string root = std::string(SHMEMCTL_TEST_DATA) + "/../..";
    compiled_ = run("g++ -std=c++20 -O2 -fPIE" + sanitizer_flags() + " -I" + root + " -c " +
                    data() + "share.cpp -o " + folder_->path() + "/share.o");
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string random_secret() {
    std::random_device random;
    return std::to_string(random()) + std::to_string(random());
  }

  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline Output compiled_;
};

TEST_P(Programs, KeepAndShareTheirVariables) {
  const Shape& shape = GetParam();
  if (run("g++ --version").status != 0)
    GTEST_SKIP() << "no g++ here";
  if (!std::filesystem::exists(library()))
    GTEST_SKIP() << "no library at " << library();
  if (shape.statically_linked && !sanitizer_flags().empty())
    GTEST_SKIP() << "a sanitizer's runtime cannot be linked into a static program";
  if (std::string(shape.flags).find("lld") != std::string::npos && run("ld.lld -v").status != 0)
    GTEST_SKIP() << "no lld here";
#ifndef __x86_64__
  if (std::string(shape.flags).find("-mcmodel=medium") != std::string::npos)
    GTEST_SKIP() << "no medium code model on this machine";
#endif
  ASSERT_EQ(compiled_.status, 0) << compiled_.text;
  const std::string object = folder_->path() + "/" + shape.name + ".o";
  const std::string program = folder_->path() + "/" + shape.name;
  const std::string source = data() + shape.source;
  const bool c = std::filesystem::path(source).extension() == ".c";
  const Output compiled = run((c ? "gcc -std=c99 " : "g++ -std=c++20 ") + ("-O1 -c " + source) +
                              " " + shape.flags + sanitizer_flags() + " -o " + object);
  ASSERT_EQ(compiled.status, 0) << compiled.text;
  const Output linked = run("g++ " + object + " " + folder_->path() + "/share.o " + library() +
                            " " + shape.flags + sanitizer_flags() + " -pthread -o " + program);
  ASSERT_EQ(linked.status, 0) << linked.text;
  const std::string secret = random_secret();
  const auto pe = [&](const char* number) {
    return "( timeout 60 " + program + " " + number + " " + secret + "; echo status " + number +
           ": $? ) & ";
  };
  const Output output = run(pe("0") + pe("1") + "wait");
  for (const char* line : {"status 0: 0\n", "status 1: 0\n"})
    EXPECT_NE(output.text.find(line), std::string::npos) << output.text;
  const std::string printed = c ? "begun before, ended after\n" : "before after\n";
  const std::size_t first = output.text.find(printed);
  ASSERT_NE(first, std::string::npos) << output.text;
  EXPECT_NE(output.text.find(printed, first + 1), std::string::npos) << output.text;
}

INSTANTIATE_TEST_SUITE_P(
    StaticData, Programs,
    testing::Values(Shape{"c_pie", "program.c", "-fPIE -pie", false},
                    Shape{"c_no_pie", "program.c", "-fno-pie -no-pie", false},
                    Shape{"c_now", "program.c", "-fPIE -pie -Wl,-z,relro,-z,now", false},
                    Shape{"c_lazy", "program.c", "-fno-pie -no-pie -Wl,-z,lazy", false},
                    Shape{"c_no_relro", "program.c", "-fPIE -pie -Wl,-z,norelro", false},
                    Shape{"c_no_build_id", "program.c", "-fPIE -pie -Wl,--build-id=none", false},
                    Shape{"c_static", "program.c", "-fno-pie -static", true},
                    Shape{"c_static_pie", "program.c", "-fPIE -static-pie", true},
                    Shape{"c_lld", "program.c", "-fPIE -pie -fuse-ld=lld", false},
                    Shape{"c_lld_no_pie", "program.c", "-fno-pie -no-pie -fuse-ld=lld", false},
                    Shape{"c_large", "large.c", "-fPIE -pie", false},
                    Shape{"c_medium", "large.c", "-mcmodel=medium -fPIE -pie", false},
                    Shape{"c_medium_no_pie", "large.c", "-mcmodel=medium -fno-pie -no-pie", false},
                    Shape{"c_medium_static", "large.c", "-mcmodel=medium -fno-pie -static", true},
                    Shape{"c_medium_constants", "large.c", "-DCONSTANTS -mcmodel=medium -fPIE -pie",
                          false},
                    Shape{"c_medium_constants_no_pie", "large.c",
                          "-DCONSTANTS -mcmodel=medium -fno-pie -no-pie", false},
                    Shape{"c_medium_lld", "large.c",
                          "-DCONSTANTS -mcmodel=medium -fPIE -pie -fuse-ld=lld", false},
                    Shape{"c_sparse", "sparse.c", "-fPIE -pie", false},
                    Shape{"c_sparse_no_pie", "sparse.c", "-fno-pie -no-pie", false},
                    Shape{"c_sparse_medium", "sparse.c", "-mcmodel=medium -fPIE -pie", false},
                    Shape{"c_sparse_static", "sparse.c", "-fno-pie -static", true},
                    Shape{"cpp_pie", "program.cpp", "-fPIE -pie", false},
                    Shape{"cpp_no_pie", "program.cpp", "-fno-pie -no-pie", false},
                    Shape{"cpp_static_libraries", "program.cpp",
                          "-fPIE -pie -static-libstdc++ -static-libgcc", true},
                    Shape{"cpp_static", "program.cpp", "-fno-pie -static", true}),
    [](const testing::TestParamInfo<Shape>& shape) { return std::string(shape.param.name); });

} // namespace
} // namespace shmemctl
