// This PE's registered memory: what find() gives while regions grow and buffers come and go.
#include "transports/rc/local_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace shmemctl::rc {
namespace {

/// Registers with two ports, and counts what is registered.
struct Ports {
  int live = 0;
  std::uint32_t next_key = 100;
  std::vector<std::string> named;

  Registration operator()(std::byte* base, std::size_t size_bytes,
                          const std::shared_ptr<const DeviceMemory>&, const std::string& what) {
    if (what == "GPU memory")
      throw Error(ExitCode::unavailable, "memory", "register", "no dma-buf", "load a driver",
                  {{}, {}, "mlx5_0", 1});
    named.push_back(what);
    Registration made;
    made.begin = reinterpret_cast<std::uint64_t>(base);
    made.end = made.begin + size_bytes;
    made.keys = {{next_key, next_key + 1}, {next_key + 2, next_key + 3}};
    next_key += 10;
    ++live;
    made.handles.push_back(std::shared_ptr<void>(&live, [this](void*) { --live; }));
    return made;
  }
};

class LocalMemories : public testing::Test {
protected:
  RegionView heap(std::size_t size_bytes) { return {1, memory_.data(), size_bytes, {}}; }

  std::array<std::byte, 4096> memory_{};
  Ports ports_;
  LocalMemory local_{[this](auto&&... range) { return ports_(range...); }};
};

TEST_F(LocalMemories, OnlyTheNewPartOfARegionIsRegistered) {
  const SegmentKey first = local_.set_region(heap(1024)), second = local_.set_region(heap(4096));
  EXPECT_EQ(local_.set_region(heap(4096)).size_bytes, 0u);
  EXPECT_EQ(first.size_bytes, 1024u);
  EXPECT_EQ(first.keys, (std::vector<std::uint32_t>{101, 103}));
  EXPECT_EQ(second.offset_bytes, 1024u);
  EXPECT_EQ(second.address, reinterpret_cast<std::uint64_t>(memory_.data() + 1024));
  EXPECT_EQ(ports_.named, (std::vector<std::string>{"the symmetric heap", "the symmetric heap"}));
  EXPECT_EQ(local_.find(memory_.data() + 1023)->lkey(1), 102u);
  EXPECT_EQ(local_.find(memory_.data() + 1024)->lkey(0), 110u);
  EXPECT_EQ(local_.find(memory_.data() + 4096), nullptr);
}

TEST_F(LocalMemories, BuffersComeAndGo) {
  std::array<std::byte, 64> buffer{};
  local_.add(buffer.data(), buffer.size());
  ASSERT_NE(local_.find(buffer.data() + 63), nullptr);
  local_.set_region(heap(1024));
  std::vector<std::uint32_t> keys;
  local_.for_each([&](const Registration& each) { keys.push_back(each.lkey(0)); });
  EXPECT_EQ(keys, (std::vector<std::uint32_t>{110, 100})) << "regions first";
  local_.remove(buffer.data());
  EXPECT_EQ(local_.find(buffer.data()), nullptr);
  EXPECT_EQ(ports_.live, 1);
  local_.remove(buffer.data());
}

TEST_F(LocalMemories, ADroppedRegionIsDeregistered) {
  local_.set_region(heap(1024));
  local_.set_region(heap(2048));
  EXPECT_EQ(ports_.live, 2);
  local_.drop_device_region(1);
  EXPECT_EQ(ports_.live, 0);
  EXPECT_EQ(local_.find(memory_.data()), nullptr);
  EXPECT_EQ(local_.set_region(heap(2048)).size_bytes, 2048u) << "all of it once more";
}

TEST_F(LocalMemories, WhyGpuMemoryCannotBeRegistered) {
  const DeviceReach reach = local_.try_device_memory(nullptr, memory_.data(), 64);
  EXPECT_EQ(reach.method, "");
  EXPECT_EQ(reach.reason, "mlx5_0: no dma-buf");
}

} // namespace
} // namespace shmemctl::rc
