// Whether NICs reach GPU memory: what a PE tries, and what all PEs conclude.
#include <gtest/gtest.h>

#include "src/runtime/gpu/gpu_direct.h"
#include "tests/support/counting_transport.h"
#include "tests/support/expect_error.h"
#include "tests/unit/transports/gpudirect/fake_devices.h"

namespace shmemctl::test {
namespace {

const GpuDirectCapability shm{"shm", "", "it does not reach PE 1", false};
const GpuDirectCapability good{"ibrc", "dma-buf", "", true};
const GpuDirectCapability bad{"ibrc", "", "mlx5_0: dma-buf: Operation not supported", true};

TEST(GpuDirectChoice, TheFirstTransportThatWorksForAllIsChosen) {
  const GpuDirectChoice choice = choose_gpu_direct("auto", {{shm, good}, {shm, good}});
  EXPECT_EQ(choice.transport, 1);
  EXPECT_EQ(choice.text, "GPUDirect RDMA by dma-buf over ibrc");
  const GpuDirectCapability other{"ibrc", "peer memory", "", true};
  EXPECT_EQ(choose_gpu_direct("auto", {{good}, {other}}).text,
            "GPUDirect RDMA by dma-buf, peer memory over ibrc");
}

TEST(GpuDirectChoice, OnePeThatCannotIsEnoughForAll) {
  GpuDirectChoice choice = choose_gpu_direct("auto", {{shm, good}, {shm, good}, {shm, bad}});
  EXPECT_EQ(choice.transport, -1);
  EXPECT_EQ(choice.text, "staged: ibrc: PE 2: mlx5_0: dma-buf: Operation not supported");
  choice = choose_gpu_direct("auto", {{bad}, {good}, {bad}});
  EXPECT_EQ(choice.text, "staged: ibrc: PE 0: mlx5_0: dma-buf: Operation not supported "
                         "(no access on 2 of 3 PEs)");
}

TEST(GpuDirectChoice, WhatReachesNotAllIsNamedIfThereIsNothingElse) {
  EXPECT_EQ(choose_gpu_direct("auto", {{shm}, {shm}}).text,
            "staged: shm: PE 0: it does not reach PE 1 (no access on 2 of 2 PEs)");
}

TEST(GpuDirectChoice, OffQueriesNoTransport) {
  const GpuDirectChoice choice = choose_gpu_direct("off", {{}, {}});
  EXPECT_EQ(choice.transport, -1);
  EXPECT_EQ(choice.text, "staged: SHMEMCTL_GPUDIRECT=off");
}

TEST(GpuDirectChoice, ARequestedMethodIsRequired) {
  const std::string text = expect_error(
      ExitCode::unavailable,
      {"SHMEMCTL_GPUDIRECT=dmabuf", "ibrc: PE 1: mlx5_0: dma-buf: Operation not supported"}, [] {
        choose_gpu_direct("dmabuf", {{good}, {bad}});
      });
  EXPECT_NE(text.find("shmemctl doctor"), std::string::npos);
}

TEST(GpuDirectChoice, APeThatSaysNothingCannot) {
  EXPECT_EQ(choose_gpu_direct("auto", {{good}, {}}).text, "staged: ibrc: PE 1: it says nothing");
  EXPECT_EQ(choose_gpu_direct("auto", {{}, {good}}).text, "staged: ibrc: PE 0: it says nothing");
}

TEST(GpuDirectCapabilities, ReachOtherPes) {
  const GpuDirectCapability odd{"ibrc", "", "two\nlines\x1f", false};
  const GpuDirectCapabilities back =
      from_bytes<GpuDirectCapabilities>(to_bytes(GpuDirectCapabilities{good, odd})).value();
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].transport, "ibrc");
  EXPECT_EQ(back[0].method, "dma-buf");
  EXPECT_TRUE(back[0].reaches_all);
  EXPECT_EQ(back[1].reason, "two\nlines\x1f");
  EXPECT_FALSE(back[1].reaches_all);
}

/// A transport whose NICs give the results that a test needs.
class Answering final : public NoTransport, public DeviceMemoryUser {
public:
  DeviceReach answer{"dma-buf", ""};
  int asked = 0;
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>&, std::byte*,
                                std::size_t) override {
    ++asked;
    return answer;
  }
  void set_device_region(int, std::shared_ptr<const DeviceMemory>) override {}
  void drop_device_region(int) override {}
};

GpuDirectCapability tried(Transport& transport, const std::vector<bool>& reaches,
                          const std::shared_ptr<MadeUpMemory>& memory) {
  return try_gpu_direct({{&transport, reaches}}, {false, true, true}, memory, {}).at(0);
}

TEST(GpuDirectTrial, AsksTheTransportsThatReachAll) {
  const auto memory = std::make_shared<MadeUpMemory>();
  Answering nic;
  EXPECT_EQ(tried(nic, {false, true, true}, memory).method, "dma-buf");
  nic.answer = {"", "mlx5_0: Bad address"};
  EXPECT_EQ(tried(nic, {true, true, true}, memory).reason, "mlx5_0: Bad address");
  EXPECT_EQ(nic.asked, 2);
  const GpuDirectCapability partial = tried(nic, {true, true, false}, memory);
  EXPECT_EQ(partial.reason, "it does not reach PE 2");
  EXPECT_FALSE(partial.reaches_all);
  memory->unordered = "GPU 0 turns writes round";
  EXPECT_EQ(tried(nic, {true, true, true}, memory).reason, "GPU 0 turns writes round");
  EXPECT_EQ(nic.asked, 2);
}

TEST(GpuDirectTrial, OtherTransportsReachMemoryOfTheHostOnly) {
  CountingTransport plain;
  const GpuDirectCapability offer =
      tried(plain, {true, true, true}, std::make_shared<MadeUpMemory>());
  EXPECT_EQ(offer.method, "");
  EXPECT_EQ(offer.reason, "it reaches memory of the host only");
}

} // namespace
} // namespace shmemctl::test
