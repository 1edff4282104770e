#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "src/base/file_descriptor.h"
#include "src/runtime/memory/buffers/address_map.h"
#include "tests/support/expect_error.h"
#include "tests/unit/runtime/buffers/buffer_memory.h"

namespace shmemctl {
namespace {

const void* address(std::uintptr_t at) {
  return reinterpret_cast<const void*>(at);
}

TEST(PageSpan, ExtendsToWholePages) {
  const std::size_t page = page_bytes();
  const std::uintptr_t base = 100 * page;
  const BufferExtent inside = extent_of(address(base + 10), 20);
  EXPECT_EQ(inside.pages, (PageSpan{base, base + page}));
  EXPECT_EQ(inside.page_gap_bytes(), 10u);
  const BufferExtent whole = extent_of(address(base), 2 * page);
  EXPECT_EQ(whole.pages, (PageSpan{base, base + 2 * page}));
  EXPECT_EQ(whole.page_gap_bytes(), 0u);
  const BufferExtent across = extent_of(address(base + page - 1), 2);
  EXPECT_EQ(across.pages, (PageSpan{base, base + 2 * page}));
  EXPECT_EQ(across.page_gap_bytes(), page - 1);
}

TEST(PageSpan, GapAndOffsetAreAddedOnce) {
  const std::size_t page = page_bytes();
  const BufferExtent buffer = extent_of(address(7 * page + 100), 3 * page);
  // In another mapping of the same pages, byte i of the buffer is at gap + i from its start.
  for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, page, 3 * page - 1})
    EXPECT_EQ(buffer.pages.begin + position(buffer.page_gap_bytes(), offset),
              buffer.address + offset);
}

TEST(PageSpan, RejectsInvalidRanges) {
  using test::expect_error;
  expect_error(ExitCode::usage, {"the address is NULL"}, [] { extent_of(nullptr, 8); });
  expect_error(ExitCode::usage, {"its size is 0"}, [] { extent_of(address(4096), 0); });
  for (const std::size_t size_bytes : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX - 8192})
    expect_error(ExitCode::usage, {"address space"}, [&] { extent_of(address(8192), size_bytes); });
}

TEST(PageSpan, RangesOutsideAreRefused) {
  require_inside(0, 10, 10);
  require_inside(10, 0, 10);
  for (const auto& [offset, bytes] : {std::pair<std::uint64_t, std::size_t>{0, 11},
                                      {10, 1},
                                      {11, 0},
                                      {UINT64_MAX, 1},
                                      {1, SIZE_MAX}})
    test::expect_error(ExitCode::usage, {"10 bytes"},
                       [&, from = offset, size = bytes] { require_inside(from, size, 10); });
}

} // namespace
namespace {

TEST(AddressMap, LinesOfTheKernel) {
  const auto map = parse_address_map(
      "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]\n"
      "7f1000000000-7f1000004000 rw-s 00002000 00:01 1234                       /memfd:a b "
      "(deleted)\n"
      "7f2000000000-7f2000001000 r-xp 00000000 fe:00 77 \n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(map.size(), 4u);
  EXPECT_EQ(map[0].pages, (PageSpan{0x55d0c8a00000, 0x55d0c8a21000}));
  EXPECT_EQ(map[0].name, "[heap]");
  EXPECT_TRUE(map[0].readable && map[0].writable && !map[0].executable && !map[0].shared);
  EXPECT_TRUE(map[1].shared);
  EXPECT_EQ(map[1].offset_bytes, 0x2000u);
  EXPECT_TRUE(map[1].is_of_file(::makedev(0, 1), 1234));
  EXPECT_FALSE(map[1].is_of_file(::makedev(0, 2), 1234));
  EXPECT_EQ(map[1].name, "/memfd:a b (deleted)");
  EXPECT_EQ(map[2].name, "");
  EXPECT_EQ(map[2].device, ::makedev(0xfe, 0));
  EXPECT_FALSE(map[3].readable);
}

TEST(AddressMap, SkipsMalformedLines) {
  for (const char* text :
       {"", "\n", "garbage", "10-20", "20-10 rw-p 0 0:0 0 \n", "10-20 rw 0 0:0 0\n",
        "10-20 rw-p 0 0 0\n", "10-20 rw-p 0 0:0 x\n", "99999999999999999-0 rw-p 0 0:0 0\n"})
    EXPECT_TRUE(parse_address_map(text).empty()) << text;
  EXPECT_EQ(parse_address_map("x\n10-20 rw-p 0 0:0 0").size(), 1u);
}

TEST(AddressMap, PartsAreCutAndCounted) {
  const auto map = parse_address_map("1000-5000 rw-s 00001000 00:01 9\n"
                                     "5000-6000 r--p 00000000 00:00 0\n"
                                     "8000-9000 rw-p 00000000 00:00 0\n");
  const auto parts = mappings_of(map, {0x3000, 0x6000});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].pages, (PageSpan{0x3000, 0x5000}));
  EXPECT_EQ(parts[0].offset_bytes, 0x3000u);
  EXPECT_TRUE(covers(parts, {0x3000, 0x6000}));
  EXPECT_FALSE(covers(mappings_of(map, {0x3000, 0x7000}), {0x3000, 0x7000}));
  EXPECT_FALSE(covers(mappings_of(map, {0x5000, 0x9000}), {0x5000, 0x9000}));
  EXPECT_TRUE(mappings_of(map, {0x6000, 0x8000}).empty());
}

TEST(AddressMap, OfThisProcess) {
  const test::Pages pages(3);
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.base());
  const PageSpan span{begin, begin + pages.size_bytes()};
  const auto parts = mappings_of(read_address_map(), span);
  EXPECT_TRUE(covers(parts, span));
  EXPECT_FALSE(parts[0].shared);
}

} // namespace
} // namespace shmemctl
