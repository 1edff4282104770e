#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/memory/symmetric_heap.h"
#include "tests/support/forked_pes.h"
#include "tests/support/socket_noise.h"

namespace shmemctl {
namespace {

using test::ChildEnds;
using test::ForkedPes;
using test::new_secret;
using test::require;

constexpr std::size_t MiB = std::size_t{1} << 20;

/// A heap of one PE, with a record of what it asks the other PEs to agree on.
class OneHeap : public testing::Test {
protected:
  SymmetricHeap& make(const SymmetricHeap::Config& config) {
    region_ = std::make_unique<SymmetricRegion>("heap", config.limit_bytes, *peers_, *backing_);
    heap_ = std::make_unique<SymmetricHeap>(
        config, *region_,
        [this](const char* call, std::uint64_t value) { agreed_.emplace_back(call, value); });
    return *heap_;
  }

  static SymmetricHeap::Config small() {
    SymmetricHeap::Config config;
    config.limit_bytes = 16 * MiB;
    config.chunk_bytes = 4 * MiB;
    return config;
  }
  static SymmetricHeap::Config checked() {
    SymmetricHeap::Config config = small();
    config.checked = true;
    config.pe = 3;
    return config;
  }

  template <class Function>
  static std::string finding_of(const Function& function) {
    try {
      function();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::finding);
      return error.message();
    }
    return "nothing was thrown";
  }
  static std::string hex(const void* address) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", address);
    return text;
  }

  std::unique_ptr<LocalPeers> peers_ = make_local_peers(new_secret(), {3}, 0, {});
  std::unique_ptr<HeapBacking> backing_ = make_host_backing({});
  std::unique_ptr<SymmetricRegion> region_;
  std::unique_ptr<SymmetricHeap> heap_;
  std::vector<std::pair<std::string, std::uint64_t>> agreed_;
};

TEST_F(OneHeap, GrowsByChunksAndNeverMoves) {
  SymmetricHeap& heap = make(small());
  EXPECT_EQ(region_->size_bytes(), 0u);
  auto* first = static_cast<std::byte*>(heap.allocate(100));
  ASSERT_EQ(first, region_->base());
  EXPECT_EQ(region_->size_bytes(), 4 * MiB);
  std::memset(first, 1, 100);
  auto* second = static_cast<std::byte*>(heap.allocate(4 * MiB));
  EXPECT_EQ(second, first + 128);
  EXPECT_EQ(region_->size_bytes(), 8 * MiB);
  std::memset(second, 2, 4 * MiB);
  EXPECT_EQ(first[99], std::byte{1});
  EXPECT_EQ(heap.allocator().size_bytes(), 8 * MiB);
}

TEST_F(OneHeap, IsAlignedAsAsked) {
  SymmetricHeap& heap = make(small());
  ASSERT_NE(heap.allocate(1), nullptr);
  void* aligned = heap.allocate(10, MiB);
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % MiB, 0u);
  // Far beyond the committed part: several chunks at once.
  void* far = heap.allocate(10, 8 * MiB);
  EXPECT_EQ(far, region_->base() + 8 * MiB);
  EXPECT_EQ(heap.allocate(10, 96), nullptr);
  EXPECT_EQ(heap.allocate(10, 32 * MiB), nullptr);
}

TEST_F(OneHeap, ExhaustionIsNullAndHarmless) {
  SymmetricHeap& heap = make(small());
  EXPECT_EQ(heap.allocate(16 * MiB + 1), nullptr);
  EXPECT_EQ(heap.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(region_->size_bytes(), 0u);
  void* all = heap.allocate(16 * MiB);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(heap.allocate(1), nullptr);
  heap.free(all);
  EXPECT_EQ(heap.allocate(16 * MiB), all);
  EXPECT_EQ(region_->size_bytes(), 16 * MiB);
}

TEST_F(OneHeap, KeepsALimitThatIsNotAMultipleOfTheChunk) {
  SymmetricHeap::Config config = small();
  config.limit_bytes = 5000;
  SymmetricHeap& heap = make(config);
  EXPECT_NE(heap.allocate(4000), nullptr);
  EXPECT_EQ(heap.allocator().size_bytes(), 5000u);
  EXPECT_EQ(heap.allocate(1000), nullptr);
  EXPECT_NE(heap.allocate(900), nullptr);
}

TEST_F(OneHeap, AcceptsARegionThatHasGrown) {
  region_ = std::make_unique<SymmetricRegion>("heap", 16 * MiB, *peers_, *backing_);
  region_->grow(8 * MiB, Deadline::after(std::chrono::seconds(60)));
  SymmetricHeap heap(small(), *region_, {});
  EXPECT_EQ(heap.allocator().size_bytes(), 8 * MiB);
  EXPECT_NE(heap.allocate(8 * MiB), nullptr);
  EXPECT_EQ(region_->size_bytes(), 8 * MiB);
}

TEST_F(OneHeap, NothingIsAllocatedForNothing) {
  SymmetricHeap& heap = make(checked());
  EXPECT_EQ(heap.allocate(0), nullptr);
  heap.free(nullptr);
  EXPECT_EQ(heap.allocator().live_blocks(), 0u);
  EXPECT_EQ(region_->size_bytes(), 0u);
}

TEST_F(OneHeap, CheckedAsksForAgreement) {
  SymmetricHeap& heap = make(checked());
  heap.allocate(64);
  heap.free(heap.allocate(640, 256));
  heap.free(nullptr);
  const std::vector<std::pair<std::string, std::uint64_t>> wanted = {
      {"shmem_malloc (size)", 64},  {"shmem_malloc (alignment)", 64},
      {"shmem_malloc (size)", 640}, {"shmem_malloc (alignment)", 256},
      {"shmem_free (offset)", 256}, {"shmem_free (offset)", ~std::uint64_t{0}}};
  EXPECT_EQ(agreed_, wanted);
}

TEST_F(OneHeap, UncheckedDoesNotCommunicate) {
  SymmetricHeap& heap = make(small());
  heap.free(heap.allocate(640));
  heap.free(nullptr);
  EXPECT_TRUE(agreed_.empty());
}

TEST_F(OneHeap, CheckedNamesADoubleFree) {
  SymmetricHeap& heap = make(checked());
  void* block = heap.allocate(100);
  heap.free(block);
  EXPECT_EQ(finding_of([&] { heap.free(block); }),
            "shmem_free(" + hex(block) + ") (PE 3): it was already freed");
  // Once allocated again, it can be freed again.
  ASSERT_EQ(heap.allocate(100), block);
  heap.free(block);
}

TEST_F(OneHeap, CheckedNamesAForeignAddress) {
  SymmetricHeap& heap = make(checked());
  ASSERT_NE(heap.allocate(100), nullptr);
  int local = 0;
  EXPECT_EQ(finding_of([&] { heap.free(&local); }),
            "shmem_free(" + hex(&local) + ") (PE 3): it is not in the symmetric heap");
}

TEST_F(OneHeap, CheckedNamesAnAddressInsideABlock) {
  SymmetricHeap& heap = make(checked());
  auto* block = static_cast<std::byte*>(heap.allocate(1000));
  EXPECT_EQ(finding_of([&] { heap.free(block + 64); }),
            "shmem_free(" + hex(block + 64) +
                ") (PE 3): it is inside an allocation, not at its start");
  EXPECT_EQ(finding_of([&] { heap.free(block + 4096); }),
            "shmem_free(" + hex(block + 4096) +
                ") (PE 3): no allocation starts there, or it was already freed");
  EXPECT_EQ(heap.allocator().live_blocks(), 1u);
}

TEST_F(OneHeap, UncheckedWarnsAndContinues) {
  SymmetricHeap& heap = make(small());
  void* block = heap.allocate(100);
  int local = 0;
  testing::internal::CaptureStderr();
  heap.free(&local);
  heap.free(block);
  heap.free(block);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("shmemctl: warning: memory: shmem_free(" + hex(&local) +
                      "): it is not in the symmetric heap\n"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find(": no allocation starts there, or it was already freed\n"), std::string::npos)
      << said;
}

TEST_F(OneHeap, ARefusalByAnotherPeChangesNothing) {
  bool refuse = false;
  region_ = std::make_unique<SymmetricRegion>("heap", 16 * MiB, *peers_, *backing_);
  SymmetricHeap heap(checked(), *region_, [&](const char* call, std::uint64_t) {
    if (refuse)
      throw Error(ExitCode::finding, call, "agree on", "PE 1 has another value", "look there");
  });
  void* block = heap.allocate(100);
  refuse = true;
  EXPECT_THROW(heap.allocate(200), Error);
  EXPECT_THROW(heap.free(block), Error);
  EXPECT_EQ(heap.allocator().live_blocks(), 1u);
  refuse = false;
  heap.free(block);
  EXPECT_EQ(heap.allocator().live_blocks(), 0u);
}

TEST(SymmetricHeap, GivesAllPesTheSameOffsets) {
  constexpr int n_pes = 3;
  const auto secret = new_secret();
  ForkedPes pes(n_pes, [&](int pe) {
    const auto peers = make_local_peers(secret, {0, 1, 2}, pe, {});
    const auto backing = make_host_backing({});
    SymmetricHeap::Config config;
    config.limit_bytes = 32 * MiB;
    config.chunk_bytes = 2 * MiB;
    SymmetricRegion region("heap", config.limit_bytes, *peers, *backing);
    SymmetricHeap heap(config, region, {});
    const auto meet = [&] { peers->exchange(-1, Deadline::after(std::chrono::seconds(60))); };
    std::mt19937 random(5);
    std::vector<std::uint64_t*> blocks;
    for (int round = 0; round < 60; ++round) {
      if (blocks.size() > 4 && random() % 3 == 0) {
        const std::size_t at = random() % blocks.size();
        heap.free(blocks[at]);
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
      }
      auto* block = static_cast<std::uint64_t*>(heap.allocate(64 + random() % (MiB / 2)));
      require(block != nullptr, "room");
      blocks.push_back(block);
      // Into the right-hand neighbour's block of the same offset.
      const int right = (pe + 1) % n_pes;
      const auto offset = reinterpret_cast<std::byte*>(block) - region.base();
      *reinterpret_cast<std::uint64_t*>(region.slot_base(right) + offset) =
          static_cast<std::uint64_t>(1000 * round + pe);
      meet();
      require(*block == static_cast<std::uint64_t>(1000 * round + (pe + n_pes - 1) % n_pes),
              "the left-hand neighbour's value");
      meet();
    }
  });
  EXPECT_EQ(pes.ends(), ChildEnds(n_pes));
}

} // namespace
} // namespace shmemctl
