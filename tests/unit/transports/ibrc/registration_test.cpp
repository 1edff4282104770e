// Methods of memory registration: the choice, the arguments of each, and the errors if none works.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>

#include "tests/support/expect_error.h"
#include "tests/support/fake_verbs.h"
#include "tests/support/temporary_folder.h"
#include "transports/verbs/registration.h"

namespace shmemctl::verbs {
namespace {

using shmemctl::test::expect_error;
using shmemctl::test::FakeDevice;
using shmemctl::test::FakeVerbs;

DeviceMemoryPaths all_paths() {
  DeviceMemoryPaths ways;
  ways.export_dma_buf = [](std::uintptr_t, std::size_t, std::string&) {
    return std::optional<DmaBuf>(DmaBuf{FileDescriptor(::open("/dev/null", O_RDONLY)), 0});
  };
  ways.library_has_dma_buf = true;
  ways.peer_memory_module = "nvidia-peermem";
  return ways;
}

TEST(RegistrationPaths, DmaBufFirstThenPeerMemory) {
  EXPECT_EQ(choose_paths(MemoryKind::host, {}).methods,
            (std::vector<RegistrationMethod>{RegistrationMethod::plain}));
  EXPECT_EQ(choose_paths(MemoryKind::cuda, all_paths()).methods,
            (std::vector<RegistrationMethod>{RegistrationMethod::dma_buf,
                                             RegistrationMethod::peer_memory}));
}

TEST(RegistrationPaths, EverySkippedMethodHasAReason) {
  DeviceMemoryPaths ways = all_paths();
  ways.dma_buf_off = "IB_DISABLE_DMABUF";
  PathChoice choice = choose_paths(MemoryKind::cuda, ways);
  EXPECT_EQ(choice.methods, (std::vector<RegistrationMethod>{RegistrationMethod::peer_memory}));
  EXPECT_EQ(choice.reasons, (std::vector<std::string>{"dma-buf: IB_DISABLE_DMABUF is set"}));
  ways = all_paths();
  ways.library_has_dma_buf = false;
  ways.peer_memory_module.clear();
  choice = choose_paths(MemoryKind::cuda, ways);
  EXPECT_TRUE(choice.methods.empty());
  EXPECT_EQ(choice.reasons,
            (std::vector<std::string>{"dma-buf: libibverbs has no ibv_reg_dmabuf_mr",
                                      "peer memory: nvidia-peermem is not loaded"}));
  ways = all_paths();
  ways.export_dma_buf = nullptr;
  ways.no_export_reason = "the driver is older than 515";
  EXPECT_EQ(choose_paths(MemoryKind::cuda, ways).reasons,
            (std::vector<std::string>{"dma-buf: the driver is older than 515"}));
}

TEST(RegistrationPaths, PeerMemoryModuleIsFound) {
  const TemporaryFolder folder;
  EXPECT_EQ(peer_memory_module(Sysroot(folder.path())), "");
  folder.write("sys/module/nvidia_peermem/version", "1\n");
  EXPECT_EQ(peer_memory_module(Sysroot(folder.path())), "nvidia-peermem");
  folder.write("sys/kernel/mm/memory_peers/nv_mem/version", "1\n");
  EXPECT_EQ(peer_memory_module(Sysroot(folder.path())), "nv_peer_mem");
}

class Registration : public testing::Test {
protected:
  /// The device that was opened last.
  Device& device() {
    found_ = survey(fake_.functions());
    return *found_.devices.at(0);
  }

  FakeVerbs fake_{{FakeDevice{}}};
  Survey found_;
};

TEST_F(Registration, HostMemory) {
  std::vector<std::byte> memory(5000);
  const MemoryRegion region =
      register_memory(device(), memory.data(), memory.size(), MemoryKind::host, {}, "a buffer");
  EXPECT_EQ(region->addr, memory.data());
  EXPECT_EQ(region->length, 5000u);
}

TEST_F(Registration, TooLittleLockedMemoryIsNamed) {
  fake_.register_error = ENOMEM;
  std::vector<std::byte> memory(1 << 20);
  rlimit before{};
  ::getrlimit(RLIMIT_MEMLOCK, &before);
  rlimit small = before;
  small.rlim_cur = 65536;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &small), 0);
  const std::string message =
      expect_error(ExitCode::unavailable,
                   {"1M of the symmetric heap (device fake0): cannot register", "fake0",
                    "Cannot allocate memory", "limit of locked memory is 64K"},
                   [&] {
                     register_memory(device(), memory.data(), memory.size(), MemoryKind::host, {},
                                     "the symmetric heap");
                   });
  ::setrlimit(RLIMIT_MEMLOCK, &before);
  EXPECT_NE(message.find("ulimit -l unlimited"), std::string::npos);
}

TEST_F(Registration, DmaBufGetsWholePagesAndThePlaceInThem) {
  std::uintptr_t asked_begin = 0;
  std::size_t asked_size = 0;
  std::uint64_t offset = 0, iova = 0;
  std::size_t length = 0;
  static ibv_mr made{};
  fake_.register_dma_buf = [&](ibv_pd*, std::uint64_t at, std::size_t bytes, std::uint64_t address,
                               int file) {
    EXPECT_GE(file, 0);
    offset = at;
    length = bytes;
    iova = address;
    auto* region = new ibv_mr(made);
    ++fake_.open_objects;
    return region;
  };
  DeviceMemoryPaths ways = all_paths();
  ways.export_dma_buf = [&](std::uintptr_t begin, std::size_t size_bytes, std::string&) {
    asked_begin = begin;
    asked_size = size_bytes;
    return std::optional<DmaBuf>(DmaBuf{FileDescriptor(::open("/dev/null", O_RDONLY)), 0x20000});
  };
  void* const address = reinterpret_cast<void*>(0x7000001100);
  const MemoryRegion region =
      register_memory(device(), address, 8192, MemoryKind::cuda, ways, "the heap of a GPU");
  EXPECT_EQ(asked_begin, 0x7000001000u);
  EXPECT_EQ(asked_size, 3u * 4096);
  EXPECT_EQ(offset, 0x20000u + 0x100u);
  EXPECT_EQ(length, 8192u);
  EXPECT_EQ(iova, 0x7000001100u);
}

TEST_F(Registration, PeerMemoryIsTheSecondMethod) {
  int tried = 0;
  fake_.register_dma_buf = [&](ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int) {
    ++tried;
    errno = EOPNOTSUPP;
    return static_cast<ibv_mr*>(nullptr);
  };
  std::vector<std::byte> memory(4096);
  const MemoryRegion region = register_memory(device(), memory.data(), memory.size(),
                                              MemoryKind::cuda, all_paths(), "the heap of a GPU");
  EXPECT_TRUE(region);
  EXPECT_EQ(tried, 1);
}

TEST_F(Registration, WhenNoMethodWorksAllAreNamed) {
  fake_.register_error = EFAULT;
  fake_.register_dma_buf = [](ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int) {
    errno = EOPNOTSUPP;
    return static_cast<ibv_mr*>(nullptr);
  };
  std::vector<std::byte> memory(4096);
  const auto attempt = [&](const DeviceMemoryPaths& ways) {
    register_memory(device(), memory.data(), memory.size(), MemoryKind::cuda, ways,
                    "the heap of a GPU");
  };
  expect_error(ExitCode::unavailable,
               {"dma-buf: Operation not supported", "peer memory: Bad address"},
               [&] { attempt(all_paths()); });
  DeviceMemoryPaths refusing = all_paths();
  refusing.export_dma_buf = [](std::uintptr_t, std::size_t, std::string& why) {
    why = "CUDA_ERROR_NOT_SUPPORTED";
    return std::optional<DmaBuf>();
  };
  refusing.peer_memory_module.clear();
  const std::string message = expect_error(
      ExitCode::unavailable,
      {"dma-buf: CUDA_ERROR_NOT_SUPPORTED", "peer memory: nvidia-peermem is not loaded"},
      [&] { attempt(refusing); });
  EXPECT_NE(message.find("doctor --only dma-buf"), std::string::npos);
}

} // namespace
} // namespace shmemctl::verbs
