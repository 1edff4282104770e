#include <atomic>
#include <cerrno>
#include <gtest/gtest.h>
#include <thread>

#include "src/runtime/memory/buffers/page_sharing.h"
#include "src/runtime/memory/host_file.h"
#include "tests/unit/runtime/buffers/buffer_memory.h"

namespace shmemctl {
namespace {

using test::Pages;

PageSpan span_of(const Pages& pages) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.base());
  return {begin, begin + pages.size_bytes()};
}

FileDescriptor file_of(std::size_t size_bytes) {
  FileDescriptor file = open_host_file(HostFileKind::memfd);
  resize_host_file(file, HostFileKind::memfd, size_bytes);
  return file;
}

TEST(PageSwap, ContentStaysThereAndBack) {
  for (const bool hold : {false, true}) {
    if (hold && !writers_can_be_held())
      continue;
    const Pages pages(5);
    test::fill(pages.base(), pages.size_bytes() - page_bytes(), 1); // one page is never touched
    const FileDescriptor file = file_of(7 * page_bytes());
    ASSERT_EQ(share_pages(span_of(pages), file.get(), 2 * page_bytes(), hold), 0);
    EXPECT_EQ(test::first_wrong(pages.base(), 4 * page_bytes(), 1), 4 * page_bytes());
    const Pages other(7, MAP_SHARED, file.get());
    EXPECT_EQ(test::first_wrong(other.base() + 2 * page_bytes(), 4 * page_bytes(), 1),
              4 * page_bytes());
    other.base()[2 * page_bytes() + 77] = std::byte{0xab};
    EXPECT_EQ(pages.base()[77], std::byte{0xab});
    ASSERT_EQ(make_pages_private(span_of(pages), file.get(), 2 * page_bytes(),
                                 PROT_READ | PROT_WRITE, hold),
              0);
    EXPECT_EQ(pages.base()[77], std::byte{0xab});
    pages.base()[78] = std::byte{0xcd};
    EXPECT_NE(other.base()[2 * page_bytes() + 78], std::byte{0xcd});
  }
}

TEST(PageSwap, FailureChangesNothing) {
  const Pages pages(2);
  test::fill(pages.base(), pages.size_bytes(), 2);
  const FileDescriptor closed;
  for (const bool hold : {false, true}) {
    if (hold && !writers_can_be_held())
      continue;
    EXPECT_EQ(share_pages(span_of(pages), closed.get(), 0, hold), EBADF);
    EXPECT_EQ(make_pages_private(span_of(pages), closed.get(), 0, PROT_READ, hold), EBADF);
    test::fill(pages.base(), pages.size_bytes(), 3); // still writable
    EXPECT_EQ(test::first_wrong(pages.base(), pages.size_bytes(), 3), pages.size_bytes());
  }
}

TEST(PageSwap, NoWriteOfAnotherThreadIsLost) {
  if (!writers_can_be_held())
    GTEST_SKIP() << "userfaultfd is not permitted here";
  const Pages pages(64);
  const FileDescriptor file = file_of(pages.size_bytes());
  // Each page has a counter that only one thread increments: a lost write is detected.
  constexpr std::size_t counters = 64;
  const auto counter = [&](std::size_t page) {
    return std::atomic_ref(
        *reinterpret_cast<std::uint64_t*>(pages.base() + page * page_bytes() + 8 * page));
  };
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> turns{0}, wrong{0};
  std::thread writer([&] {
    for (std::uint64_t turn = 1; !stop.load(); ++turn) {
      for (std::size_t page = 0; page < counters; ++page)
        if (counter(page).fetch_add(1) != turn - 1)
          wrong.fetch_add(1);
      turns.store(turn);
    }
  });
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t before = turns.load();
    EXPECT_EQ(share_pages(span_of(pages), file.get(), 0, true), 0);
    EXPECT_EQ(make_pages_private(span_of(pages), file.get(), 0, PROT_READ | PROT_WRITE, true), 0);
    while (turns.load() == before)
      std::this_thread::yield();
  }
  stop.store(true);
  writer.join();
  EXPECT_EQ(wrong.load(), 0u);
}

TEST(PageSwap, OwnStackIsSeen) {
  int local = 0;
  EXPECT_TRUE(holds_own_stack(extent_of(&local, sizeof local).pages));
  EXPECT_TRUE(holds_own_stack(extent_of(&errno, sizeof errno).pages));
  const Pages pages(1);
  EXPECT_FALSE(holds_own_stack(span_of(pages)));
  std::thread([] {
    int other = 0;
    EXPECT_TRUE(holds_own_stack(extent_of(&other, sizeof other).pages));
  }).join();
}

} // namespace
} // namespace shmemctl
