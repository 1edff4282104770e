// QPs of kernels over a device that looks real: which doorbell each one rings, and how often a page
// of registers is mapped.
#include <gtest/gtest.h>

#if __has_include(<infiniband/mlx5dv.h>)

#include "src/runtime/gpu/device_queues.h"
#include "tests/support/transport_world.h"
#include "tests/unit/kernels/device_network/kernel_threads.h"
#include "tests/unit/transports/mlx5/fake_device.h"
#include "transports/ibgda/ibgda.h"

namespace shmemctl::test {
namespace {

constexpr std::array<std::uint8_t, 16> address_of_port = {0, 0, 0,    0,    0,  0, 0, 0,
                                                          0, 0, 0xff, 0xff, 10, 0, 0, 1};

/// The result of a job of one PE, connected to itself by QPs of the host and of kernels.
struct MappedQueues {
  int queues = 0, maps = 0, register_pages = 0;
  std::set<const void*> registers; ///< of the kernels' queues
  bool write_combining = false;
};

/// @param posts kernels put a value by each QP
MappedQueues map_queues_of(FakeDevice& device, bool posts) {
  device.add_gid(0, IBV_GID_TYPE_ROCE_V2, address_of_port);
  if (posts)
    device.serve();
  TransportWorldOptions wanted;
  wanted.n_pes = 1;
  wanted.options = {{"DEVICE_PATH", "ibgda"}, {"IBGDA_NUM_RC_PER_PE", "3"}};
  const auto make = [&](const TransportSetup& setup) -> std::unique_ptr<Transport> {
    auto settings = ibgda::read_settings(*setup.options);
    settings.queue.page_bytes = device.page_bytes;
    settings.list_devices = [&](std::string&) { return devx_devices(device.libraries()); };
    settings.open_device = [&](const std::string& name, int port) {
      return open_devx_hca(device.libraries(), name, port, {});
    };
    return std::make_unique<ibgda::IbgdaTransport>(setup, settings);
  };
  MappedQueues seen;
  const auto body = [&](TransportPe& me) {
    auto& transport = static_cast<ibgda::IbgdaTransport&>(*me.transport);
    auto memory = std::make_shared<PlainKernelMemory>();
    memory->page_bytes = device.page_bytes;
    const DeviceQueues queues(transport, memory, 1);
    DeviceNetwork network{};
    queues.describe(network);
    seen.queues = static_cast<int>(device::qps_to(network, 0));
    seen.maps = memory->maps;
    seen.register_pages = memory->register_pages;
    ThreadWait wait;
    for (std::uint32_t number = 0; number < device::qps_to(network, 0); ++number) {
      const QpView& view = network.queues->queue(0, 0, network.first_qp_set + number).view;
      seen.registers.insert(view.doorbell);
      seen.write_combining = seen.write_combining || view.write_combining != 0;
      ThreadQueue queue(network, 0, number, 0, wait);
      if (posts) {
        EXPECT_TRUE(queue.put_value({region::heap, number * 8u}, number + 1, 8) && queue.quiet());
      }
    }
    for (std::uint64_t number = 0; posts && number < device::qps_to(network, 0); ++number) {
      std::uint64_t word = 0;
      std::memcpy(&word, me.heap + number * 8, sizeof word);
      EXPECT_EQ(word, number + 1);
    }
  };
  EXPECT_EQ(run_transport_world(make, body, wanted), "");
  return seen;
}

TEST(Mlx5DoorbellPages, EachQueueHasARegisterOfItsOwn) {
  FakeDevice device;
  const MappedQueues seen = map_queues_of(device, true);
  EXPECT_EQ(seen.queues, 3);
  EXPECT_EQ(seen.registers.size(), 3u);
  EXPECT_EQ(seen.register_pages, 3);
  EXPECT_FALSE(seen.write_combining);
}

/// Two write-combining registers share a page of the system, which is mapped once.
TEST(Mlx5DoorbellPages, APageOfTwoRegistersIsMappedOnce) {
  for (const std::size_t page_bytes : {std::size_t{4096}, std::size_t{65536}}) {
    FakeDevice device;
    device.dedicated_pages = 0;
    device.page_bytes = page_bytes;
    const MappedQueues seen = map_queues_of(device, true);
    EXPECT_EQ(seen.registers.size(), 3u) << page_bytes;
    EXPECT_EQ(seen.register_pages, 2) << page_bytes;
    EXPECT_TRUE(seen.write_combining);
    // Queues' memory, results, and those pages.
    EXPECT_EQ(seen.maps, 3 + 1 + 2);
  }
}

/// Some dedicated pages, then none: later ones share.
TEST(Mlx5DoorbellPages, WhenDedicatedPagesRunOut) {
  FakeDevice device;
  device.dedicated_pages = 4; // three of the pages are for the host's queues
  const MappedQueues seen = map_queues_of(device, true);
  EXPECT_EQ(seen.registers.size(), 3u);
}

/// An old rdma-core on a device without write combining: one register for all.
TEST(Mlx5DoorbellPages, TheSharedPageIsMappedOnce) {
  FakeDevice device;
  device.dedicated_pages = 0;
  device.has_gathering_pages = false;
  // Nothing is posted: a register that is plain memory does not see one of two values.
  const MappedQueues seen = map_queues_of(device, false);
  EXPECT_EQ(seen.queues, 3);
  EXPECT_EQ(seen.registers.size(), 1u);
  EXPECT_EQ(seen.register_pages, 1);
}

} // namespace
} // namespace shmemctl::test

#endif
