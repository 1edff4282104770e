// Symmetric regions of GPU memory.

#include "src/base/deadline.h"
#include "src/runtime/memory/cuda_backing.h"
#include "src/runtime/memory/symmetric_region.h"
#include "tests/support/forked_pes.h"
#include "tests/support/set_variable.h"
#include "tests/support/socket_noise.h"
#include "tests/unit/runtime/cuda/drivers.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t step_bytes = std::size_t{4} << 20;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

using VmmTest = OverDrivers;

TEST_P(VmmTest, ARegionOfOnePeIsZeroedKeepsItsContentAndGrowsInPlace) {
  const auto gpu = device();
  const auto backing = make_cuda_vmm_backing(gpu);
  EXPECT_FALSE(backing->is_host_memory());
  const auto peers = make_local_peers(new_secret(), {0}, 0, {});
  SymmetricRegion region("heap", 3 * step_bytes, *peers, *backing);
  region.grow(step_bytes, soon());
  Copies copies(gpu);
  EXPECT_EQ(copies.load(region.base(), 512), std::vector<std::uint64_t>(512, 0));
  EXPECT_EQ(copies.load(region.base() + step_bytes - 4096, 512),
            std::vector<std::uint64_t>(512, 0));
  copies.store(region.base() + 64, {1, 2, 3});
  std::byte* const before = region.base();
  region.grow(step_bytes, soon());
  EXPECT_EQ(region.base(), before);
  EXPECT_EQ(copies.load(region.base() + 64, 3), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(copies.load(region.base() + step_bytes, 512), std::vector<std::uint64_t>(512, 0));
}

INSTANTIATE_TEST_SUITE_P(, VmmTest, both_drivers(), name_of_driver);

/// What a PE does: writes into all parts, and reads its own.
void share_a_region(const std::shared_ptr<const cuda::Driver>& driver, int pe, int n_pes,
                    const JobSecret& secret) {
  const auto count = static_cast<int>(driver->devices().size());
  const auto gpu = std::make_shared<const cuda::Device>(driver, cuda::device_of_pe(pe, count, {}));
  const auto backing = make_cuda_vmm_backing(gpu);
  std::vector<int> all;
  for (int peer = 0; peer < n_pes; ++peer)
    all.push_back(peer);
  const auto peers = make_local_peers(secret, all, pe, {});
  SymmetricRegion region("heap", 4 * step_bytes, *peers, *backing);
  Copies copies(gpu);
  for (int step = 0; step < 2; ++step) {
    region.grow(step_bytes, soon());
    const std::size_t begin = region.size_bytes() - step_bytes;
    const auto value = [step](int from, int to) {
      return static_cast<std::uint64_t>(1000 * step + 10 * from + to + 1);
    };
    for (int peer = 0; peer < n_pes; ++peer)
      copies.store(region.slot_base(peer) + begin + 8 * pe, {value(pe, peer)});
    peers->exchange(-1, soon()); // all have written
    const auto mine = copies.load(region.base() + begin, static_cast<std::size_t>(n_pes));
    for (int peer = 0; peer < n_pes; ++peer)
      require(mine[static_cast<std::size_t>(peer)] == value(peer, pe),
              "PE " + std::to_string(pe) + " has what PE " + std::to_string(peer) + " wrote");
    peers->exchange(-1, soon());
  }
}

class VmmProcesses : public ::testing::TestWithParam<const char*> {};

// CUDA does not survive a fork, so each process opens it.
TEST_P(VmmProcesses, WriteIntoEachOthersParts) {
  constexpr int n_pes = 3;
  const auto secret = new_secret();
  const std::string library = GetParam();
  ForkedPes pes(n_pes, [&](int pe) {
    std::string why;
    const auto driver = cuda::Driver::open(library, why);
    require(driver != nullptr, "no driver: " + why);
    share_a_region(driver, pe, n_pes, secret);
  });
  const ChildEnds ends = pes.ends();
  if (library == real_driver() && ends[0].find("no driver") != std::string::npos)
    GTEST_SKIP() << ends[0];
  EXPECT_EQ(ends, ChildEnds(n_pes));
}

INSTANTIATE_TEST_SUITE_P(, VmmProcesses, both_drivers(), name_of_driver);

/// Each call that can fail does so once: an Error with the driver's error text, and no leak.
TEST(VmmFaults, EachFailureIsSaidAndLeavesNothing) {
  const std::pair<const char*, const char*> faults[] = {
      {"cuMemAddressReserve:1:2", "reserve"},
      {"cuMemCreate:1:2", "out of memory"},
      {"cuMemExportToShareableHandle:1:999", "export"},
      {"cuMemMap:1:2", "map"},
      {"cuMemSetAccess:1:999", "allow access"},
      {"cuMemsetD8Async:1:719", "clear"},
      {"cuStreamSynchronize:1:719", "wait for a stream"},
      {"cuStreamCreateWithPriority:1:2", "stream"},
      {"cuMemGetAllocationGranularity:1:1", "page size"},
  };
  for (const auto& [fault, words] : faults) {
    ForkedPes one(1, [&, fault = fault, words = words](int) { // the driver counts its calls
      const SetVariable fail("FAKE_CUDA_FAIL", fault);
      const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
      require(driver != nullptr, "the driver opens");
      std::string message;
      try {
        const auto gpu = std::make_shared<const cuda::Device>(driver, 0);
        const auto backing = make_cuda_vmm_backing(gpu);
        const auto peers = make_local_peers(new_secret(), {0}, 0, {});
        SymmetricRegion region("heap", step_bytes, *peers, *backing);
        region.grow(step_bytes, soon());
      } catch (const Error& error) {
        message = error.message();
      }
      require(message.find(words) != std::string::npos, message + " says " + words);
      require(held_by_fake() == nothing_held, held_by_fake());
    });
    EXPECT_EQ(one.ends(), ChildEnds(1)) << fault;
  }
}

TEST(VmmFaults, ExhaustedDeviceMemoryIsAnErrorAndTheRegionStaysUsable) {
  const SetVariable small("FAKE_CUDA_BYTES", "8388608");
  const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
  ASSERT_TRUE(driver);
  {
    const auto gpu = std::make_shared<const cuda::Device>(driver, 0);
    const auto backing = make_cuda_vmm_backing(gpu);
    const auto peers = make_local_peers(new_secret(), {0}, 0, {});
    SymmetricRegion region("heap", 8 * step_bytes, *peers, *backing);
    region.grow(step_bytes, soon());
    try {
      region.grow(2 * step_bytes, soon());
      ADD_FAILURE() << "12 MiB of 8";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("8M of memory of GPU 0"), std::string::npos)
          << error.message();
      EXPECT_NE(error.message().find("out of memory"), std::string::npos) << error.message();
      EXPECT_NE(error.fix().find("nvidia-smi"), std::string::npos) << error.fix();
    }
    EXPECT_EQ(region.size_bytes(), step_bytes);
    region.grow(step_bytes, soon());
    EXPECT_EQ(region.size_bytes(), 2 * step_bytes);
  }
  EXPECT_EQ(held_by_fake(), nothing_held);
}

TEST(VmmFaults, GarbageFromAPeerIsRefused) {
  const auto driver = open_driver(SHMEMCTL_FAKE_CUDA);
  ASSERT_TRUE(driver);
  const auto gpu = std::make_shared<const cuda::Device>(driver, 0);
  const auto backing = make_cuda_vmm_backing(gpu);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor write_end(ends[1]);
  EXPECT_THROW(backing->import(FileDescriptor(ends[0]), step_bytes), Error);
}

} // namespace
} // namespace shmemctl::test
