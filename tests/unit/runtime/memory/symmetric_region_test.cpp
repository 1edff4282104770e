#include <atomic>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

#include "src/runtime/memory/symmetric_region.h"
#include "tests/support/forked_pes.h"
#include "tests/support/socket_noise.h"
#include "tests/support/thread_peers.h"

namespace shmemctl {
namespace {

using test::ChildEnds;
using test::ForkedPes;
using test::new_secret;
using test::open_descriptors;
using test::require;

constexpr std::size_t step_bytes = std::size_t{2} << 20;

Deadline in_seconds(double seconds) {
  return Deadline::after(std::chrono::duration<double>(seconds));
}

std::vector<int> first_pes(int count) {
  std::vector<int> pes;
  for (int pe = 0; pe < count; ++pe)
    pes.push_back(pe);
  return pes;
}

std::uint64_t* words(std::byte* at) {
  return reinterpret_cast<std::uint64_t*>(at);
}

TEST(SymmetricRegion, OfOnePeIsItsOwn) {
  const auto peers = make_local_peers(new_secret(), {0}, 0, {});
  const auto backing = make_host_backing({});
  SymmetricRegion region("heap", 3 * step_bytes - 1, *peers, *backing);
  EXPECT_EQ(region.stride_bytes(), 3 * step_bytes);
  EXPECT_EQ(region.size_bytes(), 0u);
  EXPECT_FALSE(region.contains(region.base()));
  region.grow(0, in_seconds(1));
  EXPECT_EQ(region.size_bytes(), 0u);
  region.grow(100, in_seconds(1));
  EXPECT_EQ(region.size_bytes(), step_bytes);
  EXPECT_TRUE(region.contains(region.base()));
  EXPECT_TRUE(region.contains(region.base() + step_bytes - 1));
  EXPECT_FALSE(region.contains(region.base() + step_bytes));
  EXPECT_FALSE(region.contains(region.base() - 1));
  EXPECT_FALSE(region.contains(nullptr));
  EXPECT_EQ(region.slot_base(0), region.base());
}

TEST(SymmetricRegion, ProcessesWriteIntoEachOther) {
  constexpr int n_pes = 5;
  const auto secret = new_secret();
  for (const char* kind : {"memfd", "devshm"}) {
    ForkedPes pes(n_pes, [&](int pe) {
      const auto peers = make_local_peers(secret, first_pes(n_pes), pe, {});
      HostBackingOptions options;
      options.kind = kind;
      const auto backing = make_host_backing(options);
      const std::size_t before = open_descriptors();
      SymmetricRegion region("heap", 3 * step_bytes, *peers, *backing);
      std::byte* const base = region.base();
      for (std::size_t step = 0; step < 3; ++step) {
        region.grow(step_bytes, in_seconds(60));
        require(region.base() == base, "nothing moves");
        for (int slot = 0; slot < n_pes; ++slot)
          words(region.slot_base(slot) + step * step_bytes)[pe] =
              100 * step + static_cast<std::size_t>(10 * slot + pe);
        peers->exchange(-1, in_seconds(60)); // a barrier
        for (std::size_t old = 0; old <= step; ++old)
          for (int writer = 0; writer < n_pes; ++writer)
            require(words(base + old * step_bytes)[writer] ==
                        100 * old + static_cast<std::size_t>(10 * pe + writer),
                    "what peers wrote");
      }
      for (int slot = 0; slot < n_pes; ++slot)
        require(region.slot_base(slot) ==
                    region.slot_base(0) + static_cast<std::size_t>(slot) * region.stride_bytes(),
                "base + slot * stride");
      require(open_descriptors() == before, "no descriptor is left");
    });
    EXPECT_EQ(pes.ends(), ChildEnds(n_pes)) << kind;
  }
}

TEST(SymmetricRegion, ThreadsWriteIntoEachOther) {
  constexpr int n_pes = 4;
  const std::size_t before = open_descriptors();
  {
    test::ThreadPeersGroup group(n_pes);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int pe = 0; pe < n_pes; ++pe)
      threads.emplace_back([&, pe] {
        const auto peers = group.peers(pe);
        const auto backing = make_host_backing({});
        SymmetricRegion region("heap", step_bytes, *peers, *backing);
        region.grow(step_bytes, in_seconds(60));
        words(region.slot_base((pe + 1) % n_pes))[7] = static_cast<std::uint64_t>(pe);
        peers->exchange(-1, in_seconds(60));
        right += words(region.base())[7] == static_cast<std::uint64_t>((pe + n_pes - 1) % n_pes);
      });
    for (std::thread& thread : threads)
      thread.join();
    EXPECT_EQ(right, n_pes);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(SymmetricRegion, DoesNotGrowBeyondItsStride) {
  const auto peers = make_local_peers(new_secret(), {0}, 0, {});
  const auto backing = make_host_backing({});
  SymmetricRegion region("internal", 2 * step_bytes, *peers, *backing);
  region.grow(step_bytes, in_seconds(1));
  try {
    region.grow(step_bytes + 1, in_seconds(1));
    FAIL() << "grown";
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "region 'internal': cannot grow: 2M of its 4M are in use, and 2097153 more do not fit");
  }
  EXPECT_EQ(region.size_bytes(), step_bytes);
  region.grow(step_bytes, in_seconds(1));
  EXPECT_EQ(region.size_bytes(), 2 * step_bytes);
}

TEST(SymmetricRegion, ExhaustedAddressSpaceIsAnError) {
  const auto backing = make_host_backing({});
  const auto peers = make_local_peers(new_secret(), {0, 1}, 0, {});
  EXPECT_THROW(SymmetricRegion("heap", SIZE_MAX, *peers, *backing), Error);
  EXPECT_THROW(SymmetricRegion("heap", SIZE_MAX / 2 - step_bytes, *peers, *backing), Error);
  EXPECT_THROW(SymmetricRegion("heap", std::size_t{1} << 59, *peers, *backing), Error);
}

/// Fails when it imports from the n-th peer.
class FailingBacking final : public HeapBacking {
public:
  explicit FailingBacking(int good_imports) : good_imports_(good_imports) {}
  const char* kind() const override { return inner_->kind(); }
  std::size_t granularity_bytes() const override { return inner_->granularity_bytes(); }
  std::unique_ptr<AddressRange> reserve(std::size_t size_bytes) override {
    return inner_->reserve(size_bytes);
  }
  std::unique_ptr<Chunk> create(std::size_t size_bytes) override {
    return inner_->create(size_bytes);
  }
  std::unique_ptr<Chunk> import(FileDescriptor descriptor, std::size_t size_bytes) override {
    if (good_imports_-- == 0)
      throw Error(ExitCode::unavailable, "the test's memory", "import", "it fails here", "nothing");
    return inner_->import(std::move(descriptor), size_bytes);
  }

private:
  int good_imports_;
  std::unique_ptr<HeapBacking> inner_ = make_host_backing({});
};

/// Reserved space is mapped too, but inaccessible ("---p" in /proc/self/maps).
bool can_be_touched(const std::byte* at) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    unsigned long begin = 0, end = 0;
    char permissions[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) == 3 &&
        reinterpret_cast<unsigned long>(at) >= begin && reinterpret_cast<unsigned long>(at) < end)
      return permissions != std::string("---p");
  }
  return false;
}

TEST(SymmetricRegion, AFailedStepIsUnmappedOnAllPes) {
  constexpr int n_pes = 3;
  const auto secret = new_secret();
  ForkedPes pes(n_pes, [&](int pe) {
    const auto peers = make_local_peers(secret, first_pes(n_pes), pe, {});
    FailingBacking backing(pe == 1 ? n_pes - 1 + 1 : 1000); // its second step, second peer
    const std::size_t before = open_descriptors();
    SymmetricRegion region("heap", 2 * step_bytes, *peers, backing);
    region.grow(step_bytes, in_seconds(60));
    words(region.base())[0] = 42;
    std::string message;
    try {
      region.grow(step_bytes, in_seconds(3));
    } catch (const Error& error) {
      message = error.message();
    }
    require(message.find(pe == 1 ? "the test's memory for the region 'heap': cannot import"
                                 : "exchange of memory handles on this node for the region 'heap': "
                                   "cannot finish: timed out waiting for PE 1") == 0,
            message);
    require(region.size_bytes() == step_bytes, "the size of before");
    require(words(region.base())[0] == 42, "what was there stays");
    for (int slot = 0; slot < n_pes; ++slot) {
      require(can_be_touched(region.slot_base(slot)), "the first step stays");
      require(!can_be_touched(region.slot_base(slot) + step_bytes), "the second step is gone");
    }
    require(open_descriptors() == before, "no descriptor is left");
  });
  EXPECT_EQ(pes.ends(), ChildEnds(n_pes));
}

} // namespace
} // namespace shmemctl
