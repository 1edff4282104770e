#include "src/runtime/buffers.h"

#include <gtest/gtest.h>

#include "src/runtime/memory/buffers/page_sharing.h"
#include "src/runtime/memory/host_file.h"
#include "tests/support/forked_pes.h"
#include "tests/unit/runtime/buffers/buffer_world.h"

namespace shmemctl {
namespace {

using test::BufferWorld;
using test::expect_error;
using test::first_wrong;
using test::Pages;
using test::patterned;

void only_attach(BuffersConfig& config) {
  config.allowed.zero_copy = false;
}
void only_staged(BuffersConfig& config) {
  config.allowed = {false, false};
}

std::size_t shared_areas() {
  const std::vector<MappedArea> map = read_address_map();
  return static_cast<std::size_t>(
      std::count_if(map.begin(), map.end(), [](const MappedArea& area) { return area.shared; }));
}

struct Way {
  const char* name;
  BufferPathKind kind;
  std::function<void(BuffersConfig&)> change;
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

class EachBufferPath : public testing::TestWithParam<Way> {};

TEST_P(EachBufferPath, PutAndGetAtEveryOffset) {
  const Pages pages(20);
  BufferWorld world(2, GetParam().change);
  // Begins and ends inside of pages, and is larger than the staging area.
  std::byte* base = pages.base() + 123;
  const std::size_t size_bytes = pages.size_bytes() - 123 - 45;
  if (!writers_can_be_held() && GetParam().kind == BufferPathKind::zero_copy)
    GTEST_SKIP() << "userfaultfd is not permitted here";
  test::fill(pages.base(), pages.size_bytes(), 1);
  const BufferHandle handle = world[0].add(base, size_bytes);
  const BufferDescriptor descriptor = world[0].describe(handle);
  const BufferPath path = world[1].path_to(descriptor);
  EXPECT_EQ(path.kind, GetParam().kind) << path.reason;
  EXPECT_FALSE(path.reason.empty());

  std::vector<std::byte> all(size_bytes);
  world[1].get(all.data(), descriptor, 0, size_bytes);
  EXPECT_EQ(std::memcmp(all.data(), base, size_bytes), 0);
  for (const auto& [offset, bytes] :
       std::vector<std::pair<std::size_t, std::size_t>>{{0, 1},
                                                        {1, 8},
                                                        {5000, 4096},
                                                        {4096 - 123, 4096},
                                                        {size_bytes - 1, 1},
                                                        {0, size_bytes},
                                                        {17, 40000}}) {
    const auto sent = patterned(bytes, static_cast<unsigned>(offset + 2));
    world[1].put(descriptor, offset, sent.data(), bytes);
    EXPECT_EQ(std::memcmp(base + offset, sent.data(), bytes), 0) << offset;
    std::vector<std::byte> got(bytes);
    world[1].get(got.data(), descriptor, offset, bytes);
    EXPECT_EQ(got, sent) << offset;
  }
  // Nothing was written around it.
  EXPECT_EQ(first_wrong(pages.base(), 123, 1), 123u);
  for (std::size_t at = 123 + size_bytes; at < pages.size_bytes(); ++at)
    EXPECT_EQ(pages.base()[at], test::pattern(at, 1));
  world[0].remove(handle);
}

TEST_P(EachBufferPath, RejectsStaleAndDamagedDescriptors) {
  const Pages pages(2), others(2);
  BufferWorld world(2, GetParam().change);
  std::uint64_t word = 1;
  const BufferHandle handle = world[0].add(pages.base(), pages.size_bytes());
  const BufferDescriptor descriptor = world[0].describe(handle);
  world[1].put(descriptor, 0, &word, 8);
  for (const auto& [offset, bytes] :
       std::vector<std::pair<std::uint64_t, std::size_t>>{{pages.size_bytes(), 1},
                                                          {pages.size_bytes() - 7, 8},
                                                          {UINT64_MAX, 8},
                                                          {0, pages.size_bytes() + 1}}) {
    expect_error(ExitCode::usage, {"bytes"},
                 [&, at = offset, size = bytes] { world[1].put(descriptor, at, &word, size); });
    expect_error(ExitCode::usage, {"bytes"},
                 [&, at = offset, size = bytes] { world[1].get(&word, descriptor, at, size); });
  }
  for (std::size_t at = 0; at < sizeof descriptor; ++at) {
    BufferDescriptor damaged = descriptor;
    reinterpret_cast<std::byte*>(&damaged)[at] ^= std::byte{4};
    expect_error(ExitCode::usage, {"descriptor"}, [&] { world[1].put(damaged, 0, &word, 8); });
  }
  world[0].remove(handle);
  expect_error(ExitCode::usage, {"it is no longer registered"},
               [&] { world[1].put(descriptor, 0, &word, 8); });
  expect_error(ExitCode::usage, {"not registered, or not any more"},
               [&] { world[1].get(&word, descriptor, 0, 8); });
  // Never opened before it went.
  const BufferHandle second = world[0].add(others.base(), others.size_bytes());
  const BufferDescriptor unopened = world[0].describe(second);
  world[0].remove(second);
  expect_error(ExitCode::usage, {"not registered, or not any more"},
               [&] { world[1].put(unopened, 0, &word, 8); });
}

/// Slot reuse (a race in FlagCX, #339): the handle of an earlier user of the slot must never reach
/// the later one, whatever was opened and cached when.
TEST_P(EachBufferPath, AStaleHandleNeverReachesTheSlotsNextUser) {
  const Pages first(2), second(2);
  BufferWorld world(2, GetParam().change);
  const std::uint64_t word = 0x1111111111111111;
  const BufferHandle old_handle = world[0].add(first.base(), first.size_bytes());
  const BufferDescriptor stale = world[0].describe(old_handle);
  world[1].put(stale, 0, &word, 8);
  world[0].remove(old_handle);
  const BufferHandle new_handle = world[0].add(second.base(), second.size_bytes());
  const BufferDescriptor fresh = world[0].describe(new_handle);
  ASSERT_EQ(old_handle.slot, new_handle.slot);
  test::fill(second.base(), second.size_bytes(), 1);
  expect_error(ExitCode::usage, {}, [&] { world[1].put(stale, 0, &word, 8); });
  EXPECT_EQ(first_wrong(second.base(), second.size_bytes(), 1), second.size_bytes());
  world[1].put(fresh, 8, &word, 8);
  EXPECT_EQ(std::memcmp(second.base() + 8, &word, 8), 0);
  expect_error(ExitCode::usage, {}, [&] { world[1].put(stale, 0, &word, 8); });
  world[1].put(fresh, 16, &word, 8); // still open
  EXPECT_EQ(first_wrong(second.base(), 8, 1), 8u);
  world[0].remove(new_handle);
}

/// Stale offset (FlagCX #406): two buffers in one page share a handle of pages; each call must use
/// the offset of its own buffer and of its own argument.
TEST_P(EachBufferPath, OffsetsBelongToTheCall) {
  const Pages pages(1);
  BufferWorld world(2, GetParam().change);
  test::fill(pages.base(), pages.size_bytes(), 1);
  std::vector<BufferDescriptor> descriptors;
  for (const std::size_t gap : {64u, 1000u, 3000u})
    descriptors.push_back(world[0].describe(world[0].add(pages.base() + gap, 500)));
  auto expected = patterned(pages.size_bytes(), 1);
  unsigned seed = 2;
  for (const std::size_t offset : {400u, 0u, 37u})
    for (std::size_t buffer = 0; buffer < 3; ++buffer, ++seed) {
      const auto sent = patterned(100, seed);
      world[1].put(descriptors[buffer], offset, sent.data(), sent.size());
      const std::size_t gap = std::array{64u, 1000u, 3000u}[buffer];
      std::memcpy(expected.data() + gap + offset, sent.data(), sent.size());
      EXPECT_EQ(std::memcmp(pages.base(), expected.data(), expected.size()), 0) << seed;
      std::vector<std::byte> got(100);
      world[1].get(got.data(), descriptors[buffer], offset, got.size());
      EXPECT_EQ(got, sent);
    }
}

/// The gap added twice (FlagCX #452) would write beyond the buffer, or into the next page.
TEST_P(EachBufferPath, TheGapIsAddedOnce) {
  BufferWorld world(2, GetParam().change);
  for (const std::size_t gap : {1u, 8u, 2048u, 4095u}) {
    const Pages pages(3);
    test::fill(pages.base(), pages.size_bytes(), 1);
    const BufferHandle handle = world[0].add(pages.base() + gap, page_bytes());
    const auto sent = patterned(page_bytes(), 2);
    world[1].put(world[0].describe(handle), 0, sent.data(), sent.size());
    EXPECT_EQ(first_wrong(pages.base(), gap, 1), gap);
    EXPECT_EQ(first_wrong(pages.base() + gap, page_bytes(), 2), page_bytes()) << gap;
    EXPECT_EQ(pages.base()[gap + page_bytes()], test::pattern(gap + page_bytes(), 1));
    world[0].remove(handle);
  }
}

TEST_P(EachBufferPath, ReadOnlyMemoryAllowsOnlyGets) {
  const Pages pages(2);
  BufferWorld world(2, GetParam().change);
  test::fill(pages.base(), pages.size_bytes(), 3);
  ::mprotect(pages.base(), pages.size_bytes(), PROT_READ);
  const BufferDescriptor descriptor =
      world[0].describe(world[0].add(pages.base(), pages.size_bytes()));
  EXPECT_EQ(descriptor.writable, 0u);
  std::vector<std::byte> got(pages.size_bytes());
  world[1].get(got.data(), descriptor, 0, got.size());
  EXPECT_EQ(first_wrong(got.data(), got.size(), 3), got.size());
  expect_error(ExitCode::usage, {"read-only"}, [&] { world[1].put(descriptor, 0, got.data(), 8); });
}

TEST_P(EachBufferPath, MemoryFreedWhileRegisteredKillsNoPe) {
  Pages pages(2);
  BufferWorld world(2, GetParam().change);
  std::uint64_t word = 5;
  const BufferHandle handle = world[0].add(pages.base(), pages.size_bytes());
  const BufferDescriptor descriptor = world[0].describe(handle);
  world[1].put(descriptor, 0, &word, 8);
  pages.unmap();
  try {
    world[1].put(descriptor, 0, &word, 8); // into pages that only PE 1 has now, or an error
    EXPECT_EQ(GetParam().kind, BufferPathKind::zero_copy);
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("freed"), std::string::npos) << error.message();
  }
  world[0].remove(handle);
}

TEST(Buffers, MemoryFreedBeforeItIsOpenedIsNoStaleDescriptor) {
  Pages pages(2);
  BufferWorld world(2);
  const std::uint64_t word = 5;
  const BufferHandle handle = world[0].add(pages.base(), pages.size_bytes());
  const BufferDescriptor descriptor = world[0].describe(handle);
  pages.unmap();
  const std::string text = expect_error(ExitCode::usage, {"freed while registered"},
                                        [&] { world[1].put(descriptor, 0, &word, 8); });
  EXPECT_NE(text.find("| unregister a buffer before freeing its memory"), std::string::npos)
      << text;
  world[0].remove(handle);
}

INSTANTIATE_TEST_SUITE_P(Buffers, EachBufferPath,
                         testing::Values(Way{"mapped", BufferPathKind::zero_copy, {}},
                                         Way{"attach", BufferPathKind::attach, only_attach},
                                         Way{"staged", BufferPathKind::staged, only_staged}),
                         [](const testing::TestParamInfo<Way>& way) {
                           return std::string(way.param.name);
                         });

TEST(Buffers, SharedMappingsAndStacks) {
  FileDescriptor file = open_host_file(HostFileKind::memfd);
  resize_host_file(file, HostFileKind::memfd, 2 * page_bytes());
  const Pages shared(2, MAP_SHARED, file.get());
  BufferWorld world(2);
  const BufferPath mapped =
      world[1].path_to(world[0].describe(world[0].add(shared.base() + 100, page_bytes())));
  EXPECT_EQ(mapped.kind, BufferPathKind::zero_copy) << mapped.reason;
  EXPECT_NE(mapped.reason.find("shared mapping"), std::string::npos) << mapped.reason;

  std::array<std::uint64_t, 100> local{};
  const BufferHandle handle = world[0].add(local.data(), sizeof local);
  const BufferDescriptor descriptor = world[0].describe(handle);
  const BufferPath path = world[1].path_to(descriptor);
  EXPECT_EQ(path.kind, BufferPathKind::attach) << path.reason;
  EXPECT_NE(path.reason.find("stack"), std::string::npos) << path.reason;
  const std::uint64_t word = 42;
  world[1].put(descriptor, 8, &word, 8);
  EXPECT_EQ(local[1], 42u);
  world[0].remove(handle);
}

TEST(Buffers, OwnBuffersAreReachedToo) {
  const Pages pages(2);
  BufferWorld world(1);
  const BufferHandle handle = world[0].add(pages.base() + 10, 100);
  const BufferDescriptor descriptor = world[0].describe(handle);
  EXPECT_EQ(world[0].path_to(descriptor).kind, BufferPathKind::zero_copy);
  const auto sent = patterned(50, 1);
  world[0].put(descriptor, 20, sent.data(), 50);
  EXPECT_EQ(first_wrong(pages.base() + 30, 50, 1), 50u);
  world[0].remove(handle);
  expect_error(ExitCode::usage, {}, [&] { world[0].put(descriptor, 0, sent.data(), 1); });
}

TEST(Buffers, ThoseOfOtherNodesAreNotReached) {
  BufferWorld world(2);
  JobHealth health;
  const auto backing = make_host_backing({});
  const Pages pages(1);
  const BufferDescriptor descriptor =
      world[0].describe(world[0].add(pages.base(), pages.size_bytes()));
  BufferWorld strangers(1); // of another job: another secret
  std::uint64_t word = 0;
  expect_error(ExitCode::usage, {"descriptor"}, [&] { strangers[0].put(descriptor, 0, &word, 8); });
  BufferWorld apart(2, [](BuffersConfig& config) {
    config.secret = {};
    config.users = {config.pe}; // each PE is on a node of its own
  });
  const BufferDescriptor far = apart[0].describe(apart[0].add(pages.base(), pages.size_bytes()));
  expect_error(ExitCode::unavailable, {"PE 0", "shares no memory"},
               [&] { apart[1].put(far, 0, &word, 8); });
}

TEST(Buffers, TheCacheKeepsTheLatest) {
  const Pages pages(10);
  BufferWorld world(2, [](BuffersConfig& config) { config.open_limit = 3; });
  std::vector<BufferDescriptor> descriptors;
  for (std::size_t page = 0; page < 10; ++page)
    descriptors.push_back(
        world[0].describe(world[0].add(pages.base() + page * page_bytes(), page_bytes())));
  const std::size_t before = shared_areas();
  for (int round = 0; round < 3; ++round)
    for (std::size_t page = 0; page < 10; ++page) {
      const auto sent = patterned(page_bytes(), static_cast<unsigned>(page + 1));
      world[1].put(descriptors[page], 0, sent.data(), sent.size());
      EXPECT_LE(world[1].open_count(), 3u);
    }
  EXPECT_EQ(world[1].open_count(), 3u);
  EXPECT_EQ(shared_areas(), before + 4); // 3 views, and the owner's table
  for (std::size_t page = 0; page < 10; ++page)
    EXPECT_EQ(first_wrong(pages.base() + page * page_bytes(), page_bytes(),
                          static_cast<unsigned>(page + 1)),
              page_bytes());
}

TEST(Buffers, OpeningEvictsEndedRegistrations) {
  const Pages pages(4);
  BufferWorld world(2);
  std::vector<BufferHandle> handles;
  for (std::size_t page = 0; page < 3; ++page) {
    handles.push_back(world[0].add(pages.base() + page * page_bytes(), page_bytes()));
    world[1].path_to(world[0].describe(handles.back()));
  }
  EXPECT_EQ(world[1].open_count(), 3u);
  for (const BufferHandle& handle : handles)
    world[0].remove(handle);
  world[1].path_to(world[0].describe(world[0].add(pages.base(), page_bytes())));
  EXPECT_EQ(world[1].open_count(), 1u);
}

TEST(Buffers, HeapMemoryIsRefused) {
  const Pages pages(1);
  BufferWorld world(1, [&](BuffersConfig& config) {
    config.is_heap = [&](const void* address) { return address == pages.base(); };
  });
  expect_error(ExitCode::usage, {"symmetric heap"},
               [&] { world[0].add(pages.base(), page_bytes()); });
}

TEST(Buffers, NamesAnOwnerThatHasExited) {
  const Pages pages(1), more(1);
  BufferWorld world(2);
  const BufferDescriptor descriptor =
      world[0].describe(world[0].add(pages.base(), pages.size_bytes()));
  const BufferDescriptor unopened = world[0].describe(world[0].add(more.base(), more.size_bytes()));
  std::uint64_t word = 1;
  world[1].put(descriptor, 0, &word, 8);
  world.end(0);
  expect_error(ExitCode::usage, {"PE 0"}, [&] { world[1].put(descriptor, 0, &word, 8); });
  expect_error(ExitCode::unavailable, {"PE 0"}, [&] { world[1].put(unopened, 0, &word, 8); });
}

TEST(Buffers, AClosedBufferIsOpenedAgainByTheNextOperation) {
  const Pages pages(1);
  BufferWorld world(2);
  const BufferDescriptor descriptor =
      world[0].describe(world[0].add(pages.base(), pages.size_bytes()));
  const std::uint64_t word = 1;
  world[1].put(descriptor, 0, &word, 8);
  EXPECT_EQ(world[1].open_count(), 1u);
  world[1].close(descriptor);
  EXPECT_EQ(world[1].open_count(), 0u);
  world[1].close(descriptor); // the descriptor is not open
  world[1].put(descriptor, 8, &word, 8);
  EXPECT_EQ(world[1].open_count(), 1u);
}

TEST(Buffers, LeaveNoDescriptorAndNoMapping) {
  const Pages pages(2);
  const auto turn = [&] {
    BufferWorld world(2);
    const BufferHandle handle = world[0].add(pages.base(), pages.size_bytes());
    std::uint64_t word = 1;
    world[1].put(world[0].describe(handle), 0, &word, 8);
    world[0].remove(handle);
  };
  turn();
  const std::size_t descriptors = test::open_descriptors();
  const std::size_t before = shared_areas();
  for (int i = 0; i < 10; ++i)
    turn();
  EXPECT_EQ(test::open_descriptors(), descriptors);
  EXPECT_EQ(shared_areas(), before);
}

} // namespace
} // namespace shmemctl
