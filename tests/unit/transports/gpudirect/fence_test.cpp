// The host's fence if regions of the host and of the GPU use different paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "src/runtime/rma.h"
#include "tests/unit/transports/gpudirect/fake_devices.h"

namespace shmemctl::test {
namespace {

class HostFence : public ::testing::Test {
protected:
  void run(std::vector<Transport*> gpu_ways) {
    Rma rma(0, 2, {&nic_, &nic_}, nobody_, 1, true);
    rma.set_gpu_transports(std::move(gpu_ways));
    rma.set_region({region::heap, host_.data(), host_.size(), {host_.data(), nullptr}});
    rma.set_region({region::gpu_heap, gpu_.data(), gpu_.size(), {gpu_.data(), nullptr}});
    std::array<std::byte, 8> data{};
    rma.put(gpu_.data(), data.data(), 8, 1, 0, false);
    rma.fence();
    rma.put(host_.data(), data.data(), 8, 1, 0, false);
  }

  Log log_;
  JobHealth nobody_;
  std::array<std::byte, 64> host_{}, gpu_{};
  Recording nic_{"nic", log_}, copies_{"copies", log_};
};

TEST_F(HostFence, WaitsForTheOtherPath) {
  run({&copies_, &copies_});
  ASSERT_EQ(log_.size(), 4u);
  EXPECT_EQ(log_.front(), "copies put 8");
  EXPECT_NE(std::find(log_.begin(), log_.end(), "copies quiet"), log_.end());
  EXPECT_NE(std::find(log_.begin(), log_.end(), "nic quiet"), log_.end());
  EXPECT_EQ(log_.back(), "nic put 8");
}

TEST_F(HostFence, UsesTheTransportsFenceIfBothUseOnePath) {
  run({&nic_, &nic_});
  EXPECT_EQ(log_, (Log{"nic put 8", "nic fence", "nic put 8"}));
}

} // namespace
} // namespace shmemctl::test
