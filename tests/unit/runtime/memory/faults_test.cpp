// Memory that is too small, full or missing: one line with the reason, and no leak.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "src/base/sysroot.h"
#include "src/runtime/memory/symmetric_heap.h"
#include "tests/support/forked_pes.h"
#include "tests/support/socket_noise.h"

namespace shmemctl {
namespace {

using test::ChildEnds;
using test::ForkedPes;
using test::new_secret;
using test::open_descriptors;
using test::require;

constexpr std::size_t MiB = std::size_t{1} << 20;

/// Runs in a separate child process, whose limits may be changed.
std::string end_of(const std::function<void()>& body) {
  ForkedPes pes(1, [&](int) { body(); });
  return pes.ends().front();
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  require(::setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0, "setrlimit");
}

std::unique_ptr<HeapBacking> backing_of(const std::string& kind) {
  HostBackingOptions options;
  options.kind = kind;
  options.huge_pages = false;
  return make_host_backing(options);
}

void write_text(const char* path, const std::string& text) {
  const FileDescriptor file(::open(path, O_WRONLY | O_CLOEXEC));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("skip: " + std::string(path) + ": " + std::strerror(errno));
}

/// This process's own mounts, where it is root.
void enter_own_mounts() {
  const std::string user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    throw std::runtime_error(std::string("skip: no user namespaces: ") + std::strerror(errno));
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/uid_map", "0 " + user + " 1");
  write_text("/proc/self/gid_map", "0 " + group + " 1");
}

void mount_on_dev_shm(const char* source, const char* type, unsigned long flags,
                      const char* options) {
  if (::mount(source, "/dev/shm", type, flags, options) != 0)
    throw std::runtime_error(std::string("skip: cannot mount: ") + std::strerror(errno));
}

bool skipped(const std::string& end) {
  return end.rfind("skip", 0) == 0;
}

TEST(MemoryFaults, NamesASmallAddressSpaceLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow needs address space";
#endif
  EXPECT_EQ(end_of([] {
              limit(RLIMIT_AS, 1024 * MiB);
              const Reservation space(4096 * MiB);
            }),
            "4G of address space: cannot reserve: the address space limit is 1G | run ulimit -v "
            "unlimited, or lower SHMEMCTL_SYMMETRIC_SIZE");
}

TEST(MemoryFaults, ASmallLimitOfFileSizesIsNamed) {
  for (const char* kind : {"memfd", "devshm"}) {
    const std::string name = kind == std::string("memfd") ? "memfd" : "/dev/shm";
    EXPECT_EQ(
        end_of([&] {
          limit(RLIMIT_FSIZE, MiB);
          backing_of(kind)->create(4 * MiB);
        }),
        "4M of shared memory (" + name +
            "): cannot commit: the file size limit is 1M | raise the limit: ulimit -f unlimited");
  }
}

TEST(MemoryFaults, TooFewOpenFilesAreNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer of undefined behaviour opens a pipe to look at objects";
#endif
  for (const char* kind : {"memfd", "devshm"}) {
    const std::string end = end_of([&] {
      const auto backing = backing_of(kind);
      limit(RLIMIT_NOFILE, 3);
      backing->create(4 * MiB);
    });
    EXPECT_NE(end.find("Too many open files | raise the limit of open files: ulimit -n"),
              std::string::npos)
        << end;
  }
}

TEST(MemoryFaults, LockedMemoryDoesNotMatter) {
  EXPECT_EQ(end_of([] {
              limit(RLIMIT_MEMLOCK, 0);
              if (::geteuid() == 0)
                require(::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 &&
                            ::setuid(65534) == 0,
                        "become nobody");
              const auto peers = make_local_peers(new_secret(), {0}, 0, {});
              const auto backing = make_host_backing({});
              SymmetricHeap::Config config;
              SymmetricRegion region("heap", config.limit_bytes, *peers, *backing);
              SymmetricHeap heap(config, region, {});
              auto* block = static_cast<std::byte*>(heap.allocate(32 * MiB));
              require(block != nullptr, "allocated");
              for (std::size_t at = 0; at < 32 * MiB; at += 4096)
                block[at] = std::byte{1};
            }),
            "");
}

TEST(MemoryFaults, MoreMemoryThanThereIsIsRefusedBeforeAnyIsTaken) {
  for (const char* kind : {"memfd", "devshm"}) {
    const std::string end = end_of([&] {
      const std::size_t before = open_descriptors();
      try {
        backing_of(kind)->create(std::size_t{1} << 50);
      } catch (...) {
        require(open_descriptors() == before, "no descriptor is left");
        throw;
      }
    });
    EXPECT_EQ(end.rfind("1024T of shared memory (", 0), 0u) << end;
    EXPECT_NE(end.find(" of free memory, of which 64M must stay free | lower "
                       "SHMEMCTL_SYMMETRIC_SIZE, run fewer PEs on this node"),
              std::string::npos)
        << end;
  }
}

TEST(MemoryFaults, AFullDevShmIsNamed) {
  const std::string end = end_of([] {
    enter_own_mounts();
    mount_on_dev_shm("tmpfs", "tmpfs", 0, "size=3m");
    const auto backing = backing_of("devshm");
    const auto fits = backing->create(2 * MiB);
    backing->create(2 * MiB);
  });
  if (skipped(end))
    GTEST_SKIP() << end;
  EXPECT_EQ(end,
            "2M of shared memory (/dev/shm): cannot commit: /dev/shm is full: its size is 3M | run "
            "mount -o remount,size=50% /dev/shm (docker run --shm-size=16g), set "
            "SHMEMCTL_HEAP_BACKING=memfd, or lower SHMEMCTL_SYMMETRIC_SIZE");
}

TEST(MemoryFaults, ReleasesAFailedCommit) {
  const std::string end = end_of([] {
    enter_own_mounts();
    mount_on_dev_shm("tmpfs", "tmpfs", 0, "size=8m");
    const auto backing = backing_of("devshm");
    bool refused = false;
    try {
      backing->create(16 * MiB);
    } catch (const Error&) {
      refused = true;
    }
    require(refused, "refused");
    require(backing->create(8 * MiB)->size_bytes() == 8 * MiB, "all of it is free again");
  });
  if (skipped(end))
    GTEST_SKIP() << end;
  EXPECT_EQ(end, "");
}

TEST(MemoryFaults, AutoDoesNotNeedDevShm) {
  const std::string end = end_of([] {
    enter_own_mounts();
    mount_on_dev_shm("tmpfs", "tmpfs", 0, "size=64k");
    require(backing_of("auto")->create(8 * MiB)->size_bytes() == 8 * MiB, "made");
  });
  if (skipped(end))
    GTEST_SKIP() << end;
  EXPECT_EQ(end, "");
}

TEST(MemoryFaults, NamesADevShmThatIsNoTmpfs) {
  const std::string end = end_of([] {
    enter_own_mounts();
    mount_on_dev_shm("/usr", nullptr, MS_BIND, nullptr);
    backing_of("devshm")->create(2 * MiB);
  });
  if (skipped(end))
    GTEST_SKIP() << end;
  EXPECT_EQ(end, "/dev/shm: cannot use: not a tmpfs | run mkdir -p /dev/shm && mount -t tmpfs "
                 "tmpfs /dev/shm, or set SHMEMCTL_HEAP_BACKING=memfd");
}

Deadline in_seconds(double seconds) {
  return Deadline::after(std::chrono::duration<double>(seconds));
}

TEST(MemoryFaults, APeerKilledBeforeItGivesMemoryIsNamed) {
  const auto secret = new_secret();
  ForkedPes pes(3, [&](int pe) {
    const auto peers = make_local_peers(secret, {0, 1, 2}, pe, {});
    const auto backing = make_host_backing({});
    const std::size_t before = open_descriptors();
    SymmetricRegion region("heap", 16 * MiB, *peers, *backing);
    region.grow(4 * MiB, in_seconds(60));
    if (pe == 2)
      ::raise(SIGKILL);
    try {
      region.grow(4 * MiB, in_seconds(3));
    } catch (...) {
      require(region.size_bytes() == 4 * MiB, "the size of before");
      require(open_descriptors() == before, "no descriptor is left");
      throw;
    }
  });
  const ChildEnds ends = pes.ends();
  EXPECT_EQ(ends[2], "signal 9");
  for (const int pe : {0, 1})
    EXPECT_EQ(ends[static_cast<std::size_t>(pe)].rfind(
                  "exchange of memory handles on this node for the region 'heap': cannot finish: "
                  "timed out waiting for PE 2 | ",
                  0),
              0u)
        << ends[static_cast<std::size_t>(pe)];
}

TEST(MemoryFaults, AShortageOnOnePeFailsTheStepOnAll) {
  const auto secret = new_secret();
  ForkedPes pes(2, [&](int pe) {
    if (pe == 1)
      limit(RLIMIT_FSIZE, 8 * MiB);
    const auto peers = make_local_peers(secret, {0, 1}, pe, {});
    const auto backing = backing_of("auto");
    SymmetricHeap::Config config;
    config.limit_bytes = 64 * MiB;
    config.chunk_bytes = 8 * MiB;
    config.timeout_s = 3;
    SymmetricRegion region("heap", config.limit_bytes, *peers, *backing);
    SymmetricHeap heap(config, region, {});
    require(heap.allocate(MiB) != nullptr, "the first chunk");
    try {
      heap.allocate(30 * MiB);
    } catch (...) {
      require(heap.allocator().size_bytes() == 8 * MiB, "the size of before");
      require(heap.allocate(MiB) != nullptr, "what is there can be used");
      throw;
    }
  });
  const ChildEnds ends = pes.ends();
  EXPECT_EQ(ends[0].rfind("exchange of memory handles on this node for the region 'heap': cannot "
                          "finish: timed out waiting for PE 1",
                          0),
            0u)
      << ends[0];
  EXPECT_EQ(ends[1], "24M of shared memory (memfd) for the region 'heap': cannot commit: the file "
                     "size limit is 8M | raise the limit: ulimit -f unlimited");
}

} // namespace
} // namespace shmemctl
