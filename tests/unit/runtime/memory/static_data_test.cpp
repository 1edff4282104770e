// StaticDataRegion in programs of every shape, compiled here and run as two PEs.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include "src/runtime/memory/static_data.h"
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
  const Output linked =
      run("g++ " + object + " " + folder_->path() + "/share.o " + library() + " -l:libzstd.a " +
          shape.flags + sanitizer_flags() + " -pthread -o " + program);
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
namespace {

constexpr std::uintptr_t load = 0x555500000000;

/// @param file_bytes what of it the program file has
ElfW(Phdr) header(std::uint32_t type, std::uintptr_t address, std::size_t size_bytes,
                  std::uint32_t flags = PF_R | PF_W, std::size_t file_bytes = 0) {
  ElfW(Phdr) made{};
  made.p_type = type;
  made.p_flags = flags;
  made.p_vaddr = address;
  made.p_memsz = size_bytes;
  made.p_filesz = file_bytes;
  return made;
}

DataLayout layout_of(const std::vector<ElfW(Phdr)>& headers) {
  return data_layout(headers, load, 4096);
}

using Ranges = std::vector<PageRange>;
PageRange pages(std::uintptr_t begin, std::uintptr_t end) {
  return {load + begin, load + end};
}

TEST(DataLayout, IsWhatRelroLeaves) {
  const DataLayout layout = layout_of(
      {header(PT_LOAD, 0, 0x900, PF_R), header(PT_LOAD, 0x1000, 0x900, PF_R | PF_X),
       header(PT_LOAD, 0x3db8, 0x5500, PF_R | PF_W, 0x400), header(PT_GNU_RELRO, 0x3db8, 0x248)});
  EXPECT_EQ(layout.problem, "");
  EXPECT_EQ(layout.pages, pages(0x4000, 0xa000));
  EXPECT_EQ(layout.stored, Ranges{pages(0x4000, 0x5000)});
  EXPECT_EQ(layout.zeroed, Ranges{pages(0x5000, 0xa000)});
  EXPECT_TRUE(layout.gaps.empty() && layout.constants.empty());
}

TEST(DataLayout, APageThatRelroEndsInIsKept) {
  EXPECT_EQ(
      layout_of({header(PT_LOAD, 0x3000, 0x3000), header(PT_GNU_RELRO, 0x3000, 0x1100)}).pages,
      pages(0x4000, 0x6000));
}

TEST(DataLayout, WithoutRelroIsTheWholeSegment) {
  EXPECT_EQ(layout_of({header(PT_LOAD, 0x3db8, 0x10)}).pages, pages(0x3000, 0x4000));
}

TEST(DataLayout, ASegmentOfRelroAloneLeavesTheOther) {
  EXPECT_EQ(layout_of({header(PT_LOAD, 0x3000, 0x400), header(PT_LOAD, 0x5000, 0x1400),
                       header(PT_GNU_RELRO, 0x3000, 0x1000)})
                .pages,
            pages(0x5000, 0x7000));
}

TEST(DataLayout, AllWritableSegmentsCount) {
  // .data and .bss, a page without anything, and .ldata, which is larger.
  const DataLayout layout = layout_of({header(PT_LOAD, 0x9000, 0x9000, PF_R | PF_W, 0x9000),
                                       header(PT_LOAD, 0x3000, 0x1000, PF_R | PF_W, 0x1000),
                                       header(PT_LOAD, 0x4010, 0x3000)});
  EXPECT_EQ(layout.problem, "");
  EXPECT_EQ(layout.pages, pages(0x3000, 0x12000));
  EXPECT_EQ(layout.stored, (Ranges{pages(0x3000, 0x4000), pages(0x9000, 0x12000)}));
  EXPECT_EQ(layout.zeroed, Ranges{pages(0x4000, 0x8000)});
  EXPECT_EQ(layout.gaps, Ranges{pages(0x8000, 0x9000)});
  EXPECT_TRUE(layout.constants.empty());
}

TEST(DataLayout, ReadOnlyDataBetweenArePartOfIt) {
  // .data and .bss, .lrodata, .ldata; constants outside are not.
  const DataLayout layout = layout_of(
      {header(PT_LOAD, 0, 0x900, PF_R), header(PT_LOAD, 0x3000, 0x1800, PF_R | PF_W, 0x100),
       header(PT_LOAD, 0x6020, 0x3000, PF_R, 0x3000),
       header(PT_LOAD, 0xb000, 0x1000, PF_R | PF_W, 0x1000), header(PT_LOAD, 0xd000, 0x10, PF_R)});
  EXPECT_EQ(layout.problem, "");
  EXPECT_EQ(layout.pages, pages(0x3000, 0xc000));
  EXPECT_EQ(layout.constants, Ranges{pages(0x6000, 0xa000)});
  EXPECT_EQ(layout.gaps, (Ranges{pages(0x5000, 0x6000), pages(0xa000, 0xb000)}));
  EXPECT_EQ(layout.zeroed, Ranges{pages(0x4000, 0x5000)});
}

TEST(DataLayout, CodeOrRelroBetweenIsRefused) {
  const auto problem = [](const ElfW(Phdr) & between) {
    return layout_of({header(PT_LOAD, 0x3000, 0x1000), between, header(PT_LOAD, 0x9000, 0x1000)})
        .problem;
  };
  EXPECT_NE(problem(header(PT_LOAD, 0x5000, 0x1000, PF_R | PF_X)), "");
  EXPECT_NE(problem(header(PT_GNU_RELRO, 0x5000, 0x1000)), "");
  EXPECT_EQ(problem(header(PT_LOAD, 0x5000, 0x1000, PF_R)), "");
  EXPECT_EQ(problem(header(PT_LOAD, 0xa000, 0x1000, PF_R | PF_X)), "");
}

TEST(DataLayout, CanBeAbsent) {
  for (const std::vector<ElfW(Phdr)>& headers : std::vector<std::vector<ElfW(Phdr)>>{
           {},
           {header(PT_LOAD, 0, 0x9000, PF_R)},
           {header(PT_LOAD, 0, 0)},
           {header(PT_LOAD, 0, 0x9000, PF_R | PF_W | PF_X)},
           {header(PT_LOAD, 0x3000, 0x800), header(PT_GNU_RELRO, 0x3000, 0x1000)}}) {
    EXPECT_NE(layout_of(headers).problem, "");
    EXPECT_EQ(layout_of(headers).pages.size_bytes(), 0u);
  }
}

TEST(DataLayout, PiecesCoverThePagesOnce) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::vector<ElfW(Phdr)> headers;
    std::uintptr_t address = 0x1000;
    for (std::uint64_t left = 1 + random() % 6; left > 0; --left) {
      address += random() % 3 * 0x1000 + random() % 2 * 0x10;
      const std::size_t size_bytes = 1 + random() % 0x5000;
      const std::uint32_t flags[] = {PF_R, PF_R | PF_W, PF_R | PF_W, PF_R | PF_X};
      headers.push_back(
          header(PT_LOAD, address, size_bytes, flags[random() % 4], random() % (size_bytes + 1)));
      address = (address + size_bytes + 0xfff) / 0x1000 * 0x1000;
    }
    const DataLayout layout = layout_of(headers);
    if (!layout.problem.empty())
      continue;
    Ranges all;
    for (const Ranges* part : {&layout.stored, &layout.zeroed, &layout.constants, &layout.gaps})
      all.insert(all.end(), part->begin(), part->end());
    std::sort(all.begin(), all.end(),
              [](const PageRange& a, const PageRange& b) { return a.begin < b.begin; });
    std::uintptr_t at = layout.pages.begin;
    for (const PageRange& range : all) {
      ASSERT_EQ(range.begin, at) << i;
      ASSERT_LT(range.begin, range.end) << i;
      at = range.end;
    }
    ASSERT_EQ(at, layout.pages.end) << i;
  }
}

int of_this_program = 1;

TEST(ProgramData, HoldsThisProgramsVariables) {
  const ProgramData data = find_program_data();
  const auto address = reinterpret_cast<std::uintptr_t>(&of_this_program);
  EXPECT_GE(address, data.pages().begin);
  EXPECT_LT(address, data.pages().end);
  EXPECT_EQ(data.pages().begin % static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), 0u);
  EXPECT_GE(data.build_id.size(), 16u);
}

std::vector<std::byte> note(std::uint32_t type, const std::string& name, const std::string& text) {
  const ElfW(Nhdr) head{static_cast<std::uint32_t>(name.size() + 1),
                        static_cast<std::uint32_t>(text.size()), type};
  std::vector<std::byte> bytes(sizeof head + (name.size() + 4) / 4 * 4 + (text.size() + 3) / 4 * 4);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, name.data(), name.size());
  std::memcpy(bytes.data() + sizeof head + (name.size() + 4) / 4 * 4, text.data(), text.size());
  return bytes;
}

TEST(BuildId, IsFoundAfterOtherNotes) {
  std::vector<std::byte> notes = note(1, "GNU", "other");
  const auto wanted = note(NT_GNU_BUILD_ID, "GNU", "\x01\xab\xff");
  notes.insert(notes.end(), wanted.begin(), wanted.end());
  EXPECT_EQ(find_build_id(notes), "01abff");
  EXPECT_FALSE(find_build_id(note(NT_GNU_BUILD_ID, "GNV", "x")));
  EXPECT_FALSE(find_build_id({}));
}

TEST(BuildId, TruncatedNotesAreIgnored) {
  const std::vector<std::byte> whole = note(NT_GNU_BUILD_ID, "GNU", "1234");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(find_build_id({whole.data(), size})) << size;
  std::vector<std::byte> huge = whole;
  std::memset(huge.data(), 0xff, 8);
  EXPECT_FALSE(find_build_id(huge));
}

} // namespace
} // namespace shmemctl
