#include "src/memory/program_data.h"

#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

namespace shmemctl {
namespace {

constexpr std::uintptr_t load = 0x555500000000;

ElfW(Phdr) header(std::uint32_t type, std::uintptr_t address, std::size_t size_bytes,
                  std::uint32_t flags = PF_R | PF_W) {
  ElfW(Phdr) made{};
  made.p_type = type;
  made.p_flags = flags;
  made.p_vaddr = address;
  made.p_memsz = size_bytes;
  return made;
}

std::optional<PageRange> pages_of(const std::vector<ElfW(Phdr)>& headers) {
  return writable_pages(headers, load, 4096);
}

TEST(WritablePages, AreWhatRelroLeaves) {
  EXPECT_EQ(pages_of({header(PT_LOAD, 0, 0x900, PF_R), header(PT_LOAD, 0x1000, 0x900, PF_R | PF_X),
                      header(PT_LOAD, 0x3db8, 0x1500), header(PT_GNU_RELRO, 0x3db8, 0x248)}),
            (PageRange{load + 0x4000, load + 0x6000}));
}

TEST(WritablePages, APageThatRelroEndsInIsKept) {
  EXPECT_EQ(pages_of({header(PT_LOAD, 0x3000, 0x3000), header(PT_GNU_RELRO, 0x3000, 0x1100)}),
            (PageRange{load + 0x4000, load + 0x6000}));
}

TEST(WritablePages, WithoutRelroAreTheWholeSegment) {
  EXPECT_EQ(pages_of({header(PT_LOAD, 0x3db8, 0x10)}), (PageRange{load + 0x3000, load + 0x4000}));
}

TEST(WritablePages, ASegmentOfRelroAloneLeavesTheOther) {
  EXPECT_EQ(pages_of({header(PT_LOAD, 0x3000, 0x400), header(PT_LOAD, 0x5000, 0x1400),
                      header(PT_GNU_RELRO, 0x3000, 0x1000)}),
            (PageRange{load + 0x5000, load + 0x7000}));
}

TEST(WritablePages, NeighboursAreOnePieceAndTheLargestCounts) {
  EXPECT_EQ(pages_of({header(PT_LOAD, 0x9000, 0x2000), header(PT_LOAD, 0x3000, 0x1000),
                      header(PT_LOAD, 0x4010, 0x2000)}),
            (PageRange{load + 0x3000, load + 0x7000}));
}

TEST(WritablePages, CanBeAbsent) {
  EXPECT_FALSE(pages_of({}));
  EXPECT_FALSE(pages_of({header(PT_LOAD, 0, 0x9000, PF_R)}));
  EXPECT_FALSE(pages_of({header(PT_LOAD, 0, 0)}));
  EXPECT_FALSE(pages_of({header(PT_LOAD, 0, 0x9000, PF_R | PF_W | PF_X)}));
  EXPECT_FALSE(pages_of({header(PT_LOAD, 0x3000, 0x800), header(PT_GNU_RELRO, 0x3000, 0x1000)}));
}

int of_this_program = 1;

TEST(ProgramData, HoldsThisProgramsVariables) {
  const ProgramData data = find_program_data();
  const auto address = reinterpret_cast<std::uintptr_t>(&of_this_program);
  EXPECT_GE(address, data.pages.begin);
  EXPECT_LT(address, data.pages.end);
  EXPECT_EQ(data.pages.begin % static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), 0u);
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
