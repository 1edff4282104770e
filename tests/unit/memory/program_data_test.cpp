#include "src/memory/program_data.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>
#include <vector>

namespace shmemctl {
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

TEST(BuildId, IsFoundBehindOtherNotes) {
  std::vector<std::byte> notes = note(1, "GNU", "other");
  const auto wanted = note(NT_GNU_BUILD_ID, "GNU", "\x01\xab\xff");
  notes.insert(notes.end(), wanted.begin(), wanted.end());
  EXPECT_EQ(find_build_id(notes), "01abff");
  EXPECT_FALSE(find_build_id(note(NT_GNU_BUILD_ID, "GNV", "x")));
  EXPECT_FALSE(find_build_id({}));
}

TEST(BuildId, CutNotesAreNone) {
  const std::vector<std::byte> whole = note(NT_GNU_BUILD_ID, "GNU", "1234");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(find_build_id({whole.data(), size})) << size;
  std::vector<std::byte> huge = whole;
  std::memset(huge.data(), 0xff, 8);
  EXPECT_FALSE(find_build_id(huge));
}

} // namespace
} // namespace shmemctl
