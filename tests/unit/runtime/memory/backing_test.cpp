#include "src/runtime/memory/backing.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/sysroot.h"
#include "tests/support/forked_pes.h"

namespace shmemctl {
namespace {

using test::open_descriptors;

constexpr std::size_t huge_bytes = std::size_t{2} << 20;

HostBackingOptions of_kind(const std::string& kind) {
  HostBackingOptions options;
  options.kind = kind;
  return options;
}

std::size_t allocated_bytes(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? static_cast<std::size_t>(status.st_blocks) * 512 : 0;
}

class Backings : public testing::TestWithParam<const char*> {
protected:
  std::unique_ptr<HeapBacking> backing_ = make_host_backing(of_kind(GetParam()));
};

TEST_P(Backings, MemoryIsCommittedAndZeroed) {
  const auto chunk = backing_->create(3 * huge_bytes);
  EXPECT_EQ(chunk->size_bytes(), 3 * huge_bytes);
  EXPECT_GE(allocated_bytes(chunk->descriptor()), 3 * huge_bytes);
  const Reservation space(3 * huge_bytes);
  chunk->map(space.base());
  EXPECT_TRUE(std::all_of(space.base(), space.base() + 3 * huge_bytes,
                          [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_P(Backings, AnImportIsTheSameMemory) {
  const auto chunk = backing_->create(huge_bytes);
  const Reservation mine(huge_bytes), theirs(huge_bytes);
  chunk->map(mine.base());
  backing_->import(FileDescriptor(::fcntl(chunk->descriptor(), F_DUPFD_CLOEXEC, 0)), huge_bytes)
      ->map(theirs.base());
  mine.base()[12345] = std::byte{77};
  EXPECT_EQ(theirs.base()[12345], std::byte{77});
}

TEST_P(Backings, MappingOutlivesTheDescriptor) {
  const std::size_t before = open_descriptors();
  const Reservation space(huge_bytes);
  backing_->create(huge_bytes)->map(space.base());
  EXPECT_EQ(open_descriptors(), before);
  space.base()[huge_bytes - 1] = std::byte{1};
  EXPECT_EQ(space.base()[huge_bytes - 1], std::byte{1});
}

TEST_P(Backings, DescriptorsAreCloseOnExec) {
  const auto chunk = backing_->create(huge_bytes);
  EXPECT_NE(::fcntl(chunk->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_P(Backings, SmallPagesWillDo) {
  const auto chunk = backing_->create_of_small_pages(12288);
  EXPECT_EQ(chunk->size_bytes(), 12288u);
  EXPECT_GE(allocated_bytes(chunk->descriptor()), 12288u);
}

TEST_P(Backings, SparseMemoryIsCommittedOnFirstTouchUnlessThatCouldBeASigbus) {
  const auto chunk = create_sparse(*backing_, huge_bytes, 4096);
  EXPECT_EQ(chunk->size_bytes(), huge_bytes);
  const bool committed = std::string(backing_->kind()) == "devshm";
  EXPECT_EQ(allocated_bytes(chunk->descriptor()), committed ? huge_bytes : 0u);
  const Reservation space(huge_bytes);
  chunk->map(space.base());
  space.base()[huge_bytes - 1] = std::byte{1};
  EXPECT_GE(allocated_bytes(chunk->descriptor()), 4096u);
  EXPECT_EQ(space.base()[0], std::byte{0});
}

TEST_P(Backings, NothingShowsInDevShm) {
  const auto chunk = backing_->create(huge_bytes);
  struct stat mine {};
  ASSERT_EQ(::fstat(chunk->descriptor(), &mine), 0);
  EXPECT_EQ(mine.st_nlink, 0u);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    struct stat other {};
    if (::lstat(entry.path().c_str(), &other) == 0) {
      EXPECT_FALSE(other.st_dev == mine.st_dev && other.st_ino == mine.st_ino) << entry.path();
    }
  }
}

TEST_P(Backings, ImportOfLessIsRefused) {
  const auto chunk = backing_->create(huge_bytes);
  const std::size_t before = open_descriptors();
  try {
    backing_->import(FileDescriptor(::fcntl(chunk->descriptor(), F_DUPFD_CLOEXEC, 0)),
                     2 * huge_bytes);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "memory of a peer: cannot import: it has 2097152 bytes instead of 4194304");
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(Backings, ImportOfSomethingElseIsRefused) {
  EXPECT_THROW(backing_->import(FileDescriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), 4096),
               Error);
  EXPECT_THROW(backing_->import(FileDescriptor(), 4096), Error);
}

INSTANTIATE_TEST_SUITE_P(Host, Backings, testing::Values("memfd", "devshm", "auto"));

TEST(HostBacking, AMemfdCannotShrinkUnderAPeer) {
  const auto chunk = make_host_backing(of_kind("memfd"))->create(huge_bytes);
  EXPECT_NE(::ftruncate(chunk->descriptor(), 0), 0);
}

TEST(HostBacking, UnknownKindIsRefused) {
  try {
    make_host_backing(of_kind("tape"));
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.message(), "heap backing 'tape': unknown kind of memory");
  }
}

// One node or many, forbidden or not: a preference is never an error.
TEST(HostBacking, APreferredNumaNodeIsNoDemand) {
  for (const int node : {0, 1, 63, 1023, 5000}) {
    HostBackingOptions options;
    options.numa_node = node;
    EXPECT_EQ(make_host_backing(options)->create(huge_bytes)->size_bytes(), huge_bytes);
  }
}

/// What is logged at level info during `call`.
std::string logged(const std::function<void()>& call) {
  configure_log(LogLevel::info);
  testing::internal::CaptureStderr();
  call();
  configure_log(LogLevel::warning);
  return testing::internal::GetCapturedStderr();
}

TEST(HostBacking, ARefusedNumaNodeIsSaidOnce) {
  HostBackingOptions options;
  options.numa_node = 1001; // no machine has that node
  const std::string said = logged([&] {
    const auto backing = make_host_backing(options);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(backing->create(huge_bytes)->size_bytes(), huge_bytes);
  });
  const std::string words = "NUMA node 1001 cannot be preferred";
  const std::size_t first = said.find(words);
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find(words, first + 1), std::string::npos) << said;
}

TEST(HostBacking, TheKernelKnowsThePreference) {
  std::unique_ptr<Chunk> chunk;
  HostBackingOptions options;
  options.numa_node = 0;
  const std::string said =
      logged([&] { chunk = make_host_backing(options)->create_of_small_pages(huge_bytes); });
  if (said.find("cannot be preferred") != std::string::npos)
    GTEST_SKIP() << "this kernel or container takes no preferences: " << said;
  const Reservation space(huge_bytes);
  chunk->map(space.base());
  const auto maps = Sysroot().read("/proc/self/numa_maps", 16 << 20);
  if (!maps)
    GTEST_SKIP() << "no /proc/self/numa_maps";
  const std::string place = fmt::format("{:x} ", reinterpret_cast<std::uintptr_t>(space.base()));
  const std::size_t line = maps->find(place);
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(maps->substr(line + place.size(), 8), "prefer:0");
}

TEST(HostBacking, UsesFreeHugePages) {
  const auto free_pages =
      Sysroot().read_integer("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  if (free_pages.value_or(0) < 2)
    GTEST_SKIP() << "no free huge pages of 2 MiB: as root, "
                    "echo 16 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
  const auto backing = make_host_backing(of_kind("memfd"));
  const auto page_bytes_of = [](const Chunk& chunk) {
    struct stat status {};
    return ::fstat(chunk.descriptor(), &status) == 0 ? status.st_blksize : 0;
  };
  const auto chunk = backing->create(huge_bytes);
  EXPECT_EQ(page_bytes_of(*chunk), static_cast<blksize_t>(huge_bytes));
  const Reservation space(huge_bytes);
  chunk->map(space.base());
  space.base()[huge_bytes - 1] = std::byte{1};
  EXPECT_NE(page_bytes_of(*backing->create_of_small_pages(huge_bytes)),
            static_cast<blksize_t>(huge_bytes));
  // More than there is: ordinary pages.
  const auto large = backing->create((static_cast<std::size_t>(*free_pages) + 1) * huge_bytes);
  EXPECT_NE(page_bytes_of(*large), static_cast<blksize_t>(huge_bytes));
}

TEST(Reservation, IsAlignedAndHoldsNoMemory) {
  const Reservation space(std::size_t{1} << 40);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(space.base()) % huge_bytes, 0u);
  EXPECT_EQ(space.size_bytes(), std::size_t{1} << 40);
  const Reservation odd(5000, 4096);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(odd.base()) % 4096, 0u);
}

TEST(Reservation, MovesAndReleases) {
  Reservation first(huge_bytes);
  std::byte* base = first.base();
  Reservation second(std::move(first));
  EXPECT_EQ(second.base(), base);
  EXPECT_EQ(first.base(), nullptr);
  first = std::move(second);
  EXPECT_EQ(first.base(), base);
  first = Reservation();
  // Unmapped.
  EXPECT_NE(::msync(base, 4096, MS_ASYNC), 0);
}

TEST(Reservation, ClearedPartsCannotBeTouched) {
  Reservation space(2 * huge_bytes);
  make_host_backing({})->create(2 * huge_bytes)->map(space.base());
  space.base()[0] = std::byte{1};
  space.clear(space.base() + huge_bytes, huge_bytes);
  EXPECT_EQ(space.base()[0], std::byte{1});
  test::ForkedPes pes(1, [&](int) {
    ::signal(SIGSEGV, SIG_DFL);
    volatile std::byte* gone = space.base() + huge_bytes;
    *gone = std::byte{1};
  });
  EXPECT_EQ(pes.ends().front(), "signal 11");
}

TEST(Reservation, TooMuchIsAnError) {
  EXPECT_THROW(Reservation(std::size_t{1} << 60), Error);
  EXPECT_THROW(Reservation(SIZE_MAX), Error);
}

} // namespace
} // namespace shmemctl
