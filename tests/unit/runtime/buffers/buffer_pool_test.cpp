#include "src/runtime/memory/buffers/buffer_pool.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <thread>

#include "src/runtime/memory/buffers/page_sharing.h"
#include "src/runtime/memory/host_file.h"
#include "tests/support/expect_error.h"
#include "tests/support/forked_pes.h"
#include "tests/unit/runtime/buffers/buffer_memory.h"

namespace shmemctl {
namespace {

using test::expect_error;
using test::first_wrong;
using test::Pages;

bool is_shared(const void* address, std::size_t size_bytes = 1) {
  const auto parts = mappings_of(read_address_map(), extent_of(address, size_bytes).pages);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                       [](const MappedArea& part) { return part.shared; });
}
bool is_private(const void* address, std::size_t size_bytes) {
  const auto parts = mappings_of(read_address_map(), extent_of(address, size_bytes).pages);
  return std::none_of(parts.begin(), parts.end(),
                      [](const MappedArea& part) { return part.shared; });
}

class BufferPoolTest : public testing::Test {
protected:
  void end(const BufferHandle& handle) {
    pool.withdraw(handle);
    pool.remove(handle);
  }
  std::unique_ptr<HeapBacking> backing = make_host_backing({});
  BufferPool pool{*backing, 64};
};

TEST_F(BufferPoolTest, PrivateMemoryBecomesSharedAndPrivateAgain) {
  const Pages pages(4);
  test::fill(pages.base(), pages.size_bytes(), 1);
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
  const RegisteredBuffer buffer = pool.get(handle);
  EXPECT_TRUE(buffer.shareable) << buffer.reason;
  EXPECT_TRUE(buffer.writable);
  EXPECT_TRUE(is_shared(pages.base(), pages.size_bytes()));
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 1), pages.size_bytes());
  const PeerToPeerHandle peers = pool.export_pages(handle);
  ASSERT_EQ(peers.pieces.size(), 1u);
  EXPECT_EQ(peers.page_gap_bytes, 0u);
  end(handle);
  EXPECT_TRUE(is_private(pages.base(), pages.size_bytes()));
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 1), pages.size_bytes());
}

TEST_F(BufferPoolTest, MallocOfEverySize) {
  if (!writers_can_be_held())
    GTEST_SKIP() << "userfaultfd is not permitted here";
  for (const std::size_t size_bytes : {1u, 100u, 4096u, 5000u, 200000u, 3u << 20}) {
    const auto memory = std::make_unique<std::byte[]>(size_bytes);
    test::fill(memory.get(), size_bytes, 2);
    const BufferHandle handle = pool.add(memory.get(), size_bytes);
    const RegisteredBuffer buffer = pool.get(handle);
    EXPECT_TRUE(buffer.shareable) << buffer.reason;
    EXPECT_EQ(buffer.extent.page_gap_bytes(),
              reinterpret_cast<std::uintptr_t>(memory.get()) % page_bytes());
    EXPECT_EQ(first_wrong(memory.get(), size_bytes, 2), size_bytes);
    // The allocator's own data share the pages: it must continue to work.
    for (int round = 0; round < 100; ++round)
      EXPECT_NE(std::make_unique<std::byte[]>(static_cast<std::size_t>(1 + round * 37)), nullptr);
    end(handle);
    EXPECT_EQ(first_wrong(memory.get(), size_bytes, 2), size_bytes);
  }
}

TEST_F(BufferPoolTest, BuffersOnTheSamePageCountIt) {
  if (!writers_can_be_held())
    GTEST_SKIP() << "userfaultfd is not permitted here";
  const Pages pages(1);
  test::fill(pages.base(), pages.size_bytes(), 3);
  const BufferHandle left = pool.add(pages.base() + 10, 100);
  const BufferHandle right = pool.add(pages.base() + 2000, 100);
  EXPECT_EQ(pool.export_pages(left).page_gap_bytes, 10u);
  EXPECT_EQ(pool.export_pages(right).page_gap_bytes, 2000u);
  EXPECT_EQ(pool.export_pages(left).pieces[0].file, pool.export_pages(right).pieces[0].file);
  end(left);
  EXPECT_TRUE(is_shared(pages.base()));
  EXPECT_EQ(pool.export_pages(right).pieces.size(), 1u);
  end(right);
  EXPECT_TRUE(is_private(pages.base(), 1));
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 3), pages.size_bytes());
}

TEST_F(BufferPoolTest, OverlappingAndNestedBuffersInAnyOrder) {
  constexpr std::size_t n_pages = 24;
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 20; ++round) {
    const Pages pages(n_pages);
    test::fill(pages.base(), pages.size_bytes(), 4);
    std::vector<RegisteredBuffer> live;
    std::array<int, n_pages> uses{};
    const auto count = [&](const RegisteredBuffer& buffer, int change) {
      const auto base = reinterpret_cast<std::uintptr_t>(pages.base());
      for (std::size_t page = (buffer.extent.pages.begin - base) / page_bytes();
           page < (buffer.extent.pages.end - base) / page_bytes(); ++page)
        uses[page] += change;
    };
    for (int step = 0; step < 60; ++step) {
      if (live.empty() || (live.size() < 8 && below(2) == 0)) {
        std::size_t begin = below(n_pages), size = 1 + below(n_pages - begin);
        begin *= page_bytes();
        size *= page_bytes();
        const BufferHandle handle = pool.add(pages.base() + begin, size);
        live.push_back(pool.get(handle));
        ASSERT_TRUE(live.back().shareable) << live.back().reason;
        count(live.back(), 1);
      } else {
        const auto victim = live.begin() + static_cast<std::ptrdiff_t>(below(live.size()));
        count(*victim, -1);
        end(victim->handle);
        live.erase(victim);
      }
      const std::vector<MappedArea> map = read_address_map();
      for (std::size_t page = 0; page < n_pages; ++page) {
        const auto parts = mappings_of(map, extent_of(pages.base() + page * page_bytes(), 1).pages);
        ASSERT_EQ(parts.at(0).shared, uses[page] > 0) << "page " << page << " in step " << step;
      }
      ASSERT_EQ(first_wrong(pages.base(), pages.size_bytes(), 4), pages.size_bytes());
    }
    for (const RegisteredBuffer& buffer : live)
      end(buffer.handle);
  }
}

TEST_F(BufferPoolTest, SlotsAreUsedAgainAndGenerationsNever) {
  const Pages pages(1);
  const BufferHandle first = pool.add(pages.base(), pages.size_bytes());
  end(first);
  const BufferHandle second = pool.add(pages.base(), pages.size_bytes());
  EXPECT_EQ(first.slot, second.slot);
  EXPECT_NE(first.generation, second.generation);
  for (const BufferHandle& stale :
       {first, BufferHandle{}, BufferHandle{second.slot, 0}, BufferHandle{63, 1},
        BufferHandle{1u << 30, second.generation}}) {
    expect_error(ExitCode::usage, {"not registered"}, [&] { pool.get(stale); });
    expect_error(ExitCode::usage, {"not registered"}, [&] { pool.withdraw(stale); });
    expect_error(ExitCode::usage, {"not registered"}, [&] { pool.remove(stale); });
    expect_error(ExitCode::usage, {"not registered"}, [&] { pool.export_pages(stale); });
  }
  EXPECT_TRUE(is_shared(pages.base()));
  end(second);
}

TEST_F(BufferPoolTest, AWithdrawnBufferKeepsItsSlot) {
  const Pages pages(1);
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
  pool.withdraw(handle);
  EXPECT_FALSE(pool.starting_at(pages.base()));
  EXPECT_THROW(pool.export_pages(handle), Error);
  EXPECT_THROW(pool.withdraw(handle), Error);
  EXPECT_EQ(pool.get(handle).extent.size_bytes, pages.size_bytes());
  const BufferHandle other = pool.add(pages.base(), pages.size_bytes());
  EXPECT_NE(other.slot, handle.slot);
  pool.remove(handle);
  EXPECT_TRUE(is_shared(pages.base()));
  end(other);
}

TEST_F(BufferPoolTest, AllSlotsInUseIsAnError) {
  const Pages pages(1);
  std::vector<BufferHandle> handles;
  for (int i = 0; i < 64; ++i)
    handles.push_back(pool.add(pages.base(), pages.size_bytes()));
  expect_error(ExitCode::unavailable, {"64 slots"},
               [&] { pool.add(pages.base(), pages.size_bytes()); });
  end(handles.back());
  handles.back() = pool.add(pages.base(), pages.size_bytes());
  for (const BufferHandle& handle : handles)
    end(handle);
  EXPECT_TRUE(is_private(pages.base(), 1));
}

TEST_F(BufferPoolTest, TheYoungestBufferThatBeginsThereIsFound) {
  const Pages pages(4);
  const BufferHandle large = pool.add(pages.base(), pages.size_bytes());
  const BufferHandle small = pool.add(pages.base() + page_bytes(), page_bytes());
  const BufferHandle again = pool.add(pages.base(), page_bytes());
  EXPECT_EQ(pool.starting_at(pages.base()), again);
  EXPECT_FALSE(pool.starting_at(pages.base() + 1));
  for (const BufferHandle& handle : {large, small, again})
    end(handle);
}

TEST_F(BufferPoolTest, SharedMappingsExportTheirOwnFile) {
  FileDescriptor file = open_host_file(HostFileKind::memfd);
  resize_host_file(file, HostFileKind::memfd, 8 * page_bytes());
  const Pages pages(4, MAP_SHARED, file.get());
  const BufferHandle handle = pool.add(pages.base() + page_bytes(), 2 * page_bytes());
  const PeerToPeerHandle peers = pool.export_pages(handle);
  ASSERT_EQ(peers.pieces.size(), 1u);
  EXPECT_FALSE(peers.pieces[0].file->adopted);
  EXPECT_EQ(peers.pieces[0].offset_bytes, page_bytes());
  const Pages other(8, MAP_SHARED, peers.pieces[0].file->descriptor.get());
  pages.base()[page_bytes()] = std::byte{0x5a};
  EXPECT_EQ(other.base()[page_bytes()], std::byte{0x5a});
  end(handle);
  EXPECT_TRUE(is_shared(pages.base(), pages.size_bytes()));
  EXPECT_EQ(other.base()[page_bytes()], std::byte{0x5a});
}

TEST_F(BufferPoolTest, MixedMemoryHasAPieceForEachFile) {
  const Pages pages(6);
  FileDescriptor file = open_host_file(HostFileKind::memfd);
  resize_host_file(file, HostFileKind::memfd, page_bytes());
  ASSERT_NE(::mmap(pages.base() + 2 * page_bytes(), page_bytes(), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, file.get(), 0),
            MAP_FAILED);
  test::fill(pages.base(), pages.size_bytes(), 5);
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
  EXPECT_EQ(pool.export_pages(handle).pieces.size(), 3u);
  end(handle);
  EXPECT_TRUE(is_shared(pages.base() + 2 * page_bytes()));
  EXPECT_TRUE(is_private(pages.base(), 2 * page_bytes()));
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 5), pages.size_bytes());
}

TEST_F(BufferPoolTest, ReadOnlyMemoryIsForGets) {
  const Pages pages(2, MAP_PRIVATE | MAP_ANONYMOUS, -1, PROT_READ);
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
  EXPECT_FALSE(pool.get(handle).writable);
  EXPECT_FALSE(pool.get(handle).shareable);
  EXPECT_NE(pool.get(handle).reason.find("read-only"), std::string::npos);
  expect_error(ExitCode::unavailable, {"read-only"}, [&] { pool.export_pages(handle); });
  end(handle);
}

TEST_F(BufferPoolTest, StacksAreNotReplaced) {
  std::array<std::byte, 10000> local{};
  const BufferHandle handle = pool.add(local.data(), local.size());
  EXPECT_FALSE(pool.get(handle).shareable);
  EXPECT_NE(pool.get(handle).reason.find("stack"), std::string::npos);
  // The main thread's stack, from another thread.
  std::thread([&] {
    const BufferHandle again = pool.add(local.data(), local.size());
    EXPECT_FALSE(pool.get(again).shareable);
    end(again);
  }).join();
  end(handle);
}

TEST_F(BufferPoolTest, PinnedMemoryStays) {
  const Pages pages(2);
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes(), false);
  EXPECT_FALSE(pool.get(handle).shareable);
  EXPECT_TRUE(is_private(pages.base(), pages.size_bytes()));
  end(handle);
}

TEST_F(BufferPoolTest, RejectsUnmappedMemory) {
  Pages pages(3);
  pages.make_hole(1);
  expect_error(ExitCode::usage, {"not mapped"},
               [&] { pool.add(pages.base(), pages.size_bytes()); });
  expect_error(ExitCode::usage, {"not mapped"},
               [&] { pool.add(pages.base(), std::size_t{1} << 46); });
  ::mprotect(pages.base(), page_bytes(), PROT_NONE);
  expect_error(ExitCode::usage, {"not readable"}, [&] { pool.add(pages.base(), page_bytes()); });
  EXPECT_TRUE(pool.handles().empty());
}

TEST_F(BufferPoolTest, MemoryFreedWhileRegisteredIsNoticed) {
  Pages pages(4);
  const std::byte* base = pages.base();
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
  pages.unmap();
  expect_error(ExitCode::usage, {"freed while registered"}, [&] { pool.export_pages(handle); });
  // Other memory is mapped there; unregistering must not touch it.
  void* other = ::mmap(const_cast<std::byte*>(base), 2 * page_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(other, base);
  test::fill(static_cast<std::byte*>(other), 2 * page_bytes(), 6);
  expect_error(ExitCode::usage, {"freed while registered"},
               [&] { pool.add(other, 2 * page_bytes()); });
  end(handle);
  EXPECT_EQ(first_wrong(base, 2 * page_bytes(), 6), 2 * page_bytes());
  const BufferHandle again = pool.add(other, 2 * page_bytes());
  EXPECT_TRUE(pool.get(again).shareable);
  end(again);
  ::munmap(other, 2 * page_bytes());
}

TEST_F(BufferPoolTest, MovedMemoryKeepsItsContent) {
  Pages pages(2);
  test::fill(pages.base(), pages.size_bytes(), 7);
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
  // As realloc() does with a large block.
  const Pages place(2);
  ASSERT_EQ(::mremap(pages.base(), pages.size_bytes(), place.size_bytes(),
                     MREMAP_MAYMOVE | MREMAP_FIXED, place.base()),
            place.base());
  end(handle);
  EXPECT_EQ(first_wrong(place.base(), place.size_bytes(), 7), place.size_bytes());
}

TEST_F(BufferPoolTest, ItsEndGivesAllPagesBack) {
  const Pages pages(3);
  test::fill(pages.base(), pages.size_bytes(), 8);
  {
    BufferPool other(*backing, 4);
    other.add(pages.base(), 2 * page_bytes());
    other.withdraw(other.add(pages.base() + page_bytes(), 2 * page_bytes()));
    EXPECT_TRUE(is_shared(pages.base(), pages.size_bytes()));
  }
  EXPECT_TRUE(is_private(pages.base(), pages.size_bytes()));
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 8), pages.size_bytes());
}

TEST_F(BufferPoolTest, AForkedChildHasItsOwnCopy) {
  const Pages pages(3);
  test::fill(pages.base(), pages.size_bytes(), 9);
  const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
  test::ForkedPes child(1, [&](int) {
    test::require(first_wrong(pages.base(), pages.size_bytes(), 9) == pages.size_bytes(),
                  "the child has the content");
    test::require(is_private(pages.base(), pages.size_bytes()), "its pages are its own");
    test::fill(pages.base(), pages.size_bytes(), 10);
    end(handle); // of no effect on the parent's files
  });
  EXPECT_EQ(child.ends(), test::ChildEnds{""});
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 9), pages.size_bytes());
  EXPECT_EQ(pool.export_pages(handle).pieces.size(), 1u);
  end(handle);
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 9), pages.size_bytes());
}

TEST_F(BufferPoolTest, LeaksNoDescriptor) {
  const Pages pages(3);
  const auto turn = [&] {
    const BufferHandle handle = pool.add(pages.base(), pages.size_bytes());
    end(handle);
  };
  turn();
  const std::size_t before = test::open_descriptors();
  for (int i = 0; i < 20; ++i)
    turn();
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_F(BufferPoolTest, ThreadsRegisterAtOnce) {
  const Pages pages(32);
  test::fill(pages.base(), pages.size_bytes(), 11);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (std::size_t turn = 0; turn < 100; ++turn) {
        const std::size_t first = (thread * 5 + turn) % 28;
        const BufferHandle handle = pool.add(pages.base() + first * page_bytes(), 4 * page_bytes());
        EXPECT_TRUE(pool.get(handle).shareable);
        EXPECT_FALSE(pool.export_pages(handle).pieces.empty());
        end(handle);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_TRUE(is_private(pages.base(), pages.size_bytes()));
  EXPECT_EQ(first_wrong(pages.base(), pages.size_bytes(), 11), pages.size_bytes());
}

} // namespace
} // namespace shmemctl
