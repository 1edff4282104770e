// Which operations go to the NIC and which to the target's agent, and which wait for others between
// the two.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/transports/gpudirect/fake_devices.h"
#include "transports/gpudirect/gpudirect.h"

namespace shmemctl::test {
namespace {

class GpuDirect : public ::testing::Test {
protected:
  GpuDirect() { make(true); }
  void make(bool nics_signal) {
    GpuDirectSettings settings;
    settings.nics_signal = nics_signal;
    settings.network = &nic_;
    settings.staged = &agent_;
    settings.is_device_memory = [this](const void* address) {
      ++asked;
      return address == other_gpu.data() || address == heap.data();
    };
    settings.memory = std::make_shared<MadeUpMemory>(&log);
    settings.description = "GPUDirect RDMA by dma-buf over nic";
    transport.emplace(std::move(settings));
    transport->set_region({3, heap.data(), heap.size(), {}});
  }
  void expect_log(const Log& wanted) {
    EXPECT_EQ(log, wanted);
    log.clear();
  }
  void add(int context = 0) { transport->post_atomic(context, there, {AtomicOp::add, 8, 1}); }
  void put(int context = 0) { transport->put(context, there, host.data(), 8, false); }

  Log log;
  int asked = 0; ///< the driver, what an address is
  std::array<std::byte, 64> heap{}, host{}, other_gpu{};
  const RemoteAddress there{1, 3, 0};
  Recording nic_{"nic", log}, agent_{"agent", log};
  std::optional<GpuDirectTransport> transport;
};

TEST_F(GpuDirect, NicsMoveDataAndAgentsMakeAtomics) {
  transport->put(0, there, host.data(), 8, true);
  transport->put(0, there, heap.data() + 8, 16, false);
  transport->get(0, host.data(), there, 32, true);
  EXPECT_EQ(transport->atomic(0, there, {AtomicOp::fetch, 8}), 42u);
  add();
  expect_log({"nic put 8", "nic put 16", "nic get 32", "agent atomic", "agent post_atomic"});
  EXPECT_EQ(transport->connection(1), "GPUDirect RDMA by dma-buf over nic: to 1");
}

TEST_F(GpuDirect, MemoryOfAGpuOutsideOfTheRegionsIsStaged) {
  transport->put(0, there, other_gpu.data(), 8, true);
  transport->get(0, other_gpu.data(), there, 8, true);
  transport->put_signal(0, there, other_gpu.data(), 8, there, 1, SignalOp::set, true);
  expect_log({"agent put 8", "agent get 8", "agent put_signal set 8"});
  // So is an operation that begins in a region and extends beyond it.
  transport->put(0, there, heap.data(), heap.size() + 1, true);
  expect_log({"agent put 65"});
}

TEST_F(GpuDirect, KnownMemoryIsNotQueriedAgain) {
  Transport& of_host = transport->for_host_memory();
  of_host.put(0, there, host.data(), 8, true);
  of_host.get(0, host.data(), there, 8, false);
  of_host.put_signal(0, there, host.data(), 8, there, 1, SignalOp::set, true);
  transport->put(0, there, heap.data() + 8, 8, true);
  EXPECT_EQ(asked, 0);
  expect_log({"nic put 8", "nic get 8", "nic put_signal set 8", "nic put 8"});
  of_host.post_atomic(0, there, {AtomicOp::add, 8, 1});
  of_host.fence(0);
  of_host.put(0, there, host.data(), 8, true);
  expect_log({"agent post_atomic", "nic fence", "agent fence", "agent quiet", "nic put 8"});
  transport->put(0, there, host.data(), 8, true);
  EXPECT_EQ(asked, 1);
}

TEST_F(GpuDirect, ASetSignalUsesThePathOfItsPayload) {
  transport->put_signal(0, there, host.data(), 8, there, 1, SignalOp::set, false);
  expect_log({"nic put_signal set 8"});
}

TEST_F(GpuDirect, AnAddedSignalWaitsForItsPayload) {
  transport->put_signal(0, there, heap.data(), 8, there, 1, SignalOp::add, false);
  expect_log({"nic put 8", "nic quiet", "agent put_signal add 0"});
  transport->put_signal(0, there, nullptr, 0, there, 1, SignalOp::add, false);
  expect_log({"agent put_signal add 0"});
}

/// Of a provider that keeps no order, or whose signals are executed by a CPU.
TEST_F(GpuDirect, SignalsAreTheAgentsIfNicsMakeNone) {
  make(false);
  transport->put_signal(0, there, heap.data(), 8, there, 1, SignalOp::set, false);
  expect_log({"nic put 8", "nic quiet", "agent put_signal set 0"});
  transport->for_host_memory().put_signal(0, there, host.data(), 8, there, 1, SignalOp::set, true);
  expect_log({"nic put 8", "nic quiet", "agent put_signal set 0"});
  transport->put_signal(0, there, nullptr, 0, there, 1, SignalOp::set, false);
  expect_log({"agent put_signal set 0"});
}

TEST_F(GpuDirect, AFenceOrdersBothPaths) {
  put();
  transport->fence(0);
  put(); // the NIC's own order
  add(); // waits for both puts
  add();
  expect_log({"nic put 8", "nic fence", "agent fence", "nic put 8", "nic quiet",
              "agent post_atomic", "agent post_atomic"});
  transport->fence(0);
  add(); // ordered by the agent itself; NIC transfers may have other orders
  put(); // waits for the additions
  put();
  expect_log({"nic fence", "agent fence", "nic quiet", "agent post_atomic", "agent quiet",
              "nic put 8", "nic put 8"});
}

TEST_F(GpuDirect, WithoutAFenceNothingWaits) {
  put();
  add();
  put();
  expect_log({"nic put 8", "agent post_atomic", "nic put 8"});
}

TEST_F(GpuDirect, AFenceIsOfItsContext) {
  put(1);
  transport->fence(0);
  add(0);
  add(1);
  expect_log({"nic put 8", "nic fence", "agent fence", "nic quiet", "agent post_atomic",
              "agent post_atomic"});
}

TEST_F(GpuDirect, QuietIsForBoth) {
  put();
  add();
  log.clear();
  transport->quiet(0);
  expect_log({"nic quiet", "agent quiet"});
  transport->quiet(0); // nothing is staged any more
  expect_log({"nic quiet"});
  transport->fence(0);
  log.clear();
  add();
  put();
  expect_log({"nic quiet", "agent post_atomic", "nic put 8"});
}

TEST_F(GpuDirect, WhatANicHasBroughtIsFlushedBeforeTheCallerKnows) {
  transport->get(0, heap.data(), there, 8, true);
  expect_log({"nic get 8", "flush"});
  transport->get(0, heap.data(), there, 8, false);
  transport->get(0, heap.data() + 8, there, 8, false);
  transport->quiet(0);
  expect_log({"nic get 8", "nic get 8", "nic quiet", "flush"});
  transport->quiet(0);
  expect_log({"nic quiet"});
  transport->get(0, host.data(), there, 8, false); // CPU-accessible memory needs none
  transport->quiet(0);
  expect_log({"nic get 8", "nic quiet"});
}

} // namespace
} // namespace shmemctl::test
