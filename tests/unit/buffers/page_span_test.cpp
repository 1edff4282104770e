#include "src/memory/buffers/page_span.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace shmemctl {
namespace {

const void* address(std::uintptr_t at) {
  return reinterpret_cast<const void*>(at);
}

TEST(PageSpan, IsWholePagesAround) {
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
  // Seen from another mapping of the same pages, byte i of the buffer is gap + i behind its start.
  for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, page, 3 * page - 1})
    EXPECT_EQ(buffer.pages.begin + position(buffer.page_gap_bytes(), offset),
              buffer.address + offset);
}

TEST(PageSpan, ContainsOnlyItsOwnBytes) {
  const BufferExtent buffer = extent_of(address(0x10010), 100);
  EXPECT_TRUE(buffer.contains(0x10010, 100));
  EXPECT_TRUE(buffer.contains(0x10073, 1));
  EXPECT_TRUE(buffer.contains(0x10074, 0));
  EXPECT_FALSE(buffer.contains(0x10074, 1));
  EXPECT_FALSE(buffer.contains(0x1000f, 1));
  EXPECT_FALSE(buffer.contains(0x10020, SIZE_MAX));
}

TEST(PageSpan, RefusesWhatIsNoMemory) {
  using test::expect_error;
  expect_error(ExitCode::usage, {"address 0"}, [] { extent_of(nullptr, 8); });
  expect_error(ExitCode::usage, {"no bytes"}, [] { extent_of(address(4096), 0); });
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
} // namespace shmemctl
