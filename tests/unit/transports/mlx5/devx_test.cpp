// The path of a real device, from opening to data, on a fake device: no hardware is needed.
#include <gtest/gtest.h>

#if __has_include(<infiniband/mlx5dv.h>)

#include "src/base/error.h"
#include "tests/unit/transports/mlx5/fake_device.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/host_qp.h"
#include "transports/mlx5/qp_layout.h"

namespace shmemctl::test {
namespace {

constexpr std::array<std::uint8_t, 16> ipv4_gid = {0, 0, 0,    0,    0,  0, 0, 0,
                                                   0, 0, 0xff, 0xff, 10, 0, 0, 1};
constexpr std::array<std::uint8_t, 16> peer_ipv4 = {0, 0, 0,    0,    0,  0, 0, 0,
                                                    0, 0, 0xff, 0xff, 10, 0, 0, 2};
constexpr std::array<std::uint8_t, 16> link_local = {0xfe, 0x80, 0, 0, 0, 0, 0, 0,
                                                     1,    2,    3, 4, 5, 6, 7, 8};

void make_ethernet(FakeDevice& device) {
  device.add_gid(0, IBV_GID_TYPE_ROCE_V1, link_local);
  device.add_gid(1, IBV_GID_TYPE_ROCE_V2, link_local);
  device.add_gid(2, IBV_GID_TYPE_ROCE_V1, ipv4_gid);
  device.add_gid(3, IBV_GID_TYPE_ROCE_V2, ipv4_gid);
}

std::unique_ptr<Hca> open_fake(FakeDevice& device, int port = 1) {
  return open_devx_hca(device.libraries(), "mlx5_7", port, {});
}

PeerInfo ethernet_peer() {
  PeerInfo peer;
  peer.qpn = 0x222222;
  peer.first_psn = 0x333333;
  peer.mtu = 3;
  peer.ethernet = 1;
  peer.gids = {{verbs::GidKind::v2_ipv4, peer_ipv4}};
  return peer;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_FALSE(error.fix().empty());
    EXPECT_NE(error.message().find("mlx5_7"), std::string::npos) << error.message();
    return error.message() + " / " + error.fix();
  }
  return "nothing was thrown";
}

TEST(Mlx5Devx, WhatTheDeviceIs) {
  FakeDevice device;
  make_ethernet(device);
  EXPECT_EQ(devx_devices(device.libraries()), std::vector<std::string>{"mlx5_7"});
  const auto hca = open_fake(device);
  EXPECT_EQ(hca->info().device, "mlx5_7");
  EXPECT_FALSE(hca->info().emulated);
  EXPECT_TRUE(hca->info().ethernet);
  EXPECT_EQ(hca->info().max_wqebbs, 1u << 14);
  EXPECT_EQ(hca->info().max_rdma_bytes, 1ull << 30);
  EXPECT_EQ(hca->info().unfit, "");
}

TEST(Mlx5Devx, WhatItLacks) {
  const auto unfit = [](const std::function<void(FakeDevice&)>& change) {
    FakeDevice device;
    make_ethernet(device);
    change(device);
    return open_fake(device)->info().unfit;
  };
  EXPECT_NE(unfit([](FakeDevice& device) { device.port_is_active = false; }).find("DOWN"),
            std::string::npos);
  EXPECT_EQ(unfit([](FakeDevice& device) { device.sizes = 0; }), "") << "puts need none";
}

/// Missing atomics are an error only if one is used. Signals are safe without.
TEST(Mlx5Devx, WhichAtomicsItHas) {
  const auto atomics = [](const std::function<void(FakeDevice&)>& change) {
    FakeDevice device;
    make_ethernet(device);
    change(device);
    return open_fake(device)->info().atomic_bytes;
  };
  EXPECT_EQ(atomics([](FakeDevice&) {}), 12u);
  EXPECT_EQ(atomics([](FakeDevice& device) { device.operations = 3; }), 0u);
  EXPECT_EQ(atomics([](FakeDevice& device) { device.sizes = 8; }), 8u);
  EXPECT_EQ(atomics([](FakeDevice& device) { device.sizes = 4; }), 4u);
  EXPECT_EQ(atomics([](FakeDevice& device) { device.host_order = 0; }), 4u)
      << "4-byte results are big-endian on all devices";
}

/// How signals are ordered after their payload, by the device's capabilities and the options.
TEST(Mlx5Devx, SignalsByCapability) {
  struct Case {
    WriteOrder requested;
    bool can_force;
    std::uint64_t sizes;
    std::uint8_t peer_capabilities;
    SignalMethod way;
    bool forced;
  };
  constexpr std::uint8_t all = PeerInfo::all_capabilities;
  constexpr auto automatic = WriteOrder::automatic, any = WriteOrder::any, kept = WriteOrder::kept;
  constexpr auto atomics = PeerInfo::atomics_8;
  const Case cases[] = {
      {automatic, true, 12, all, SignalMethod::atomic, false},
      {automatic, true, 0, all, SignalMethod::write, true},
      // the peer does not keep the order
      {automatic, true, 0, atomics, SignalMethod::completion, true},
      {automatic, false, 0, all, SignalMethod::completion, false},
      {automatic, true, 12, PeerInfo::orders_writes, SignalMethod::completion, false},
      {any, true, 0, all, SignalMethod::completion, false},
      {any, true, 12, all, SignalMethod::atomic, false},
      {kept, true, 12, all, SignalMethod::write, true},
      {kept, false, 12, all, SignalMethod::write, false}, // trusted
      {kept, true, 12, atomics, SignalMethod::atomic, true},
  };
  for (const Case& each : cases) {
    FakeDevice device;
    make_ethernet(device);
    device.can_force_order = each.can_force;
    device.sizes = each.sizes;
    DevxSettings settings;
    settings.write_order = each.requested;
    const auto hca = open_devx_hca(device.libraries(), "mlx5_7", 1, settings);
    const auto queue = hca->create_queue({});
    PeerInfo peer = ethernet_peer();
    peer.capabilities = each.peer_capabilities;
    queue->connect(peer);
    const auto number = static_cast<int>(&each - cases);
    EXPECT_EQ(queue->abilities().signals, each.way) << number;
    EXPECT_EQ(device.receive.get(command::qp::dp_ordering_force), each.forced ? 1u : 0u) << number;
    EXPECT_EQ(device.receive.get(command::qp::dp_ordering_0), 0u);
    EXPECT_EQ(device.receive.get(command::qp::dp_ordering_1), 0u);
  }
}

TEST(Mlx5Devx, ConnectsOnEthernet) {
  FakeDevice device;
  make_ethernet(device);
  {
    const auto hca = open_fake(device);
    const auto queue = hca->create_queue({});
    const PeerInfo local = queue->local();
    EXPECT_EQ(local.qpn, 0xabcdeu);
    EXPECT_EQ(local.gids.front(), (verbs::Address{verbs::GidKind::v2_ipv4, ipv4_gid}));
    EXPECT_EQ(local.mtu, 5);
    EXPECT_EQ(local.ethernet, 1);
    queue->connect(ethernet_peer());
    namespace qp = command::qp;
    EXPECT_EQ(device.commands, (std::vector<std::uint16_t>{0x400, 0x500, 0x502, 0x503, 0x504}));
    EXPECT_EQ(device.receive.get(qp::mtu), 3u) << "the smaller one";
    EXPECT_EQ(device.receive.get(qp::source_gid_index), 3u) << "RoCE v2, IPv4";
    EXPECT_EQ(device.receive.get(qp::rgid_low), 0x0000ffff0a000002u);
    EXPECT_EQ(device.receive.get(qp::rmac_high), 0x0203u);
    EXPECT_EQ(device.receive.get(qp::rmac_low), 0x04050607u);
    EXPECT_EQ(device.receive.get(qp::log_rra_max), 3u);
    EXPECT_EQ(device.send.get(qp::next_send_psn), local.first_psn);
    EXPECT_EQ(device.receive.get(qp::next_receive_psn), 0x333333u);
  }
  EXPECT_EQ(device.closed, "address events queue completions page memory domain device ");
}

/// Defaults of the options do not restrict GIDs: a port with RoCE v1 or IPv6 only can be used.
TEST(Mlx5Devx, AnyKindOfGidThatBothEndsHave) {
  constexpr std::array<std::uint8_t, 16> ipv6_gid = {0xfd, 0, 0, 0, 0, 0, 0, 0,
                                                     0,    0, 0, 0, 0, 0, 0, 1};
  using Kind = verbs::GidKind;
  const auto used_index = [](FakeDevice& device, const std::vector<verbs::Address>& peer_gids) {
    PeerInfo peer = ethernet_peer();
    peer.gids = peer_gids;
    const auto hca = open_fake(device);
    hca->create_queue({})->connect(peer);
    return device.receive.get(command::qp::source_gid_index);
  };
  {
    FakeDevice device;
    device.add_gid(1, IBV_GID_TYPE_ROCE_V1, ipv4_gid);
    EXPECT_EQ(used_index(device, {{Kind::v2_ipv4, link_local}, {Kind::v1_ipv4, peer_ipv4}}), 1u);
    EXPECT_EQ(device.receive.get(command::qp::rgid_low), 0x0000ffff0a000002u);
  }
  {
    FakeDevice device;
    make_ethernet(device);
    device.add_gid(5, IBV_GID_TYPE_ROCE_V2, ipv6_gid);
    EXPECT_EQ(used_index(device, {{Kind::v2_ipv6, ipv6_gid}}), 5u);
    EXPECT_EQ(used_index(device, {{Kind::v1_link_local, link_local}}), 0u);
  }
}

TEST(Mlx5Devx, ConnectsOnInfiniBand) {
  FakeDevice device;
  device.ethernet = false;
  device.add_gid(0, IBV_GID_TYPE_IB, link_local);
  const auto hca = open_fake(device);
  const auto queue = hca->create_queue({});
  EXPECT_EQ(queue->local().lid, 0x1234);
  PeerInfo peer;
  peer.lid = 0x4321;
  peer.mtu = 5;
  queue->connect(peer);
  EXPECT_EQ(device.receive.get(command::qp::rlid), 0x4321u);
  EXPECT_EQ(device.receive.get(command::qp::grh), 0u);
  EXPECT_NE(message_of([&] {
              hca->create_queue({})->connect(ethernet_peer());
            }).find("InfiniBand and the other Ethernet"),
            std::string::npos);
}

TEST(Mlx5Devx, CarriesData) {
  for (const CqMode mode : {CqMode::ring, CqMode::collapsed})
    for (const bool uncached : {true, false}) {
      FakeDevice device;
      make_ethernet(device);
      device.dedicated_pages = uncached ? 1000 : 0;
      std::array<std::uint64_t, 64> there{}, here{};
      auto way = std::make_shared<MappedExecutor>();
      KeyWindow window;
      window.key = 0x1234;
      window.address = reinterpret_cast<std::uint64_t>(there.data());
      window.size_bytes = sizeof there;
      window.access = access_all;
      window.mapped = reinterpret_cast<std::byte*>(there.data());
      way->add(window);
      device.peer = way;
      const auto hca = open_fake(device);
      const auto memory = hca->register_memory({here.data(), sizeof here});
      EXPECT_NE(memory->lkey(), memory->rkey());
      JobHealth health;
      QpOptions options;
      options.wqebbs = 64;
      options.signal_every = 16;
      options.completions = mode;
      HostQp queue(*hca, options, health, 1, std::chrono::seconds(60));
      queue.connect(ethernet_peer());
      EXPECT_EQ(queue.hca_queue().view().write_combining, uncached ? 0u : 1u);
      device.serve();
      const auto at = [&](std::size_t word) {
        return RaddrSegment{window.address + 8 * word, 0x1234};
      };
      for (std::uint64_t i = 1; i <= 50; ++i) {
        here[0] = i;
        queue.write(at(1), here.data(), memory->lkey(), 8);
        EXPECT_EQ(queue.fetch(at(0), atomic_add(8, 2)), 2 * (i - 1));
        queue.wait(queue.read(at(1), here.data() + 1, memory->lkey(), 8,
                              {DoorbellMode::now, true, false}));
        EXPECT_EQ(here[1], i);
      }
      EXPECT_EQ(queue.fetch(at(0), atomic_add(4, 1)), 100u);
      queue.quiet();
      EXPECT_FALSE(queue.hca_queue().fatal_event());
    }
}

TEST(Mlx5Devx, Events) {
  FakeDevice device;
  make_ethernet(device);
  const auto hca = open_fake(device);
  const auto queue = hca->create_queue({});
  EXPECT_FALSE(queue->fatal_event());
  const std::pair<std::uint64_t, std::string> events[] = {{0x04, "completion queue"},
                                                          {0x05, "catastrophic"},
                                                          {0x10, "invalid request"},
                                                          {0x11, "access violation"}};
  for (const auto& [number, words] : events) {
    device.raise_event(number);
    const std::optional<std::string> event = queue->fatal_event();
    ASSERT_TRUE(event);
    EXPECT_NE(event->find(words), std::string::npos) << *event;
  }
  EXPECT_FALSE(queue->fatal_event());
}

TEST(Mlx5Devx, EveryStepThatFailsIsNamedAndNothingIsLeft) {
  const std::pair<std::string, std::string> calls[] = {
      {"open_device", "open"},
      {"alloc_uar", "UAR"},
      {"umem_reg", "memory of a QP"},
      {"create_event_channel", "events"},
      {"create_ah", "Ethernet address of 10.0.0.2"}};
  for (const auto& [call, words] : calls) {
    FakeDevice device;
    make_ethernet(device);
    device.failing_call = call;
    const std::string message = message_of([&] {
      const auto hca = open_fake(device);
      hca->create_queue({})->connect(ethernet_peer());
    });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }
  const std::pair<std::uint16_t, std::string> commands[] = {{0x400, "completion queue"},
                                                            {0x500, "queue pair"},
                                                            {0x502, "INIT"},
                                                            {0x503, "RTR"},
                                                            {0x504, "RTS"}};
  for (const auto& [code, words] : commands) {
    FakeDevice device;
    make_ethernet(device);
    device.failing_command = code;
    const std::string message = message_of([&] {
      const auto hca = open_fake(device);
      hca->create_queue({})->connect(ethernet_peer());
    });
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("syndrome 0x12345678"), std::string::npos) << message;
    EXPECT_NE(device.closed.find("page memory domain device "), std::string::npos);
  }
}

TEST(Mlx5Devx, WhatCannotBe) {
  {
    FakeDevice device;
    make_ethernet(device);
    EXPECT_NE(message_of([&] { open_fake(device, 2); }).find("no such port, only 1 to 1"),
              std::string::npos);
    const auto hca = open_fake(device);
    QpOptions options;
    options.wqebbs = 1u << 15;
    EXPECT_NE(message_of([&] { hca->create_queue(options); }).find("16384"), std::string::npos);
    device.failing_call = "reg_mr";
    EXPECT_NE(message_of([&] {
                hca->register_memory({&device, 64});
              }).find("ulimit -l"),
              std::string::npos);
  }
  {
    FakeDevice device; // without any GID
    EXPECT_NE(message_of([&] { open_fake(device)->create_queue({}); }).find("GID"),
              std::string::npos);
  }
  {
    FakeDevice device;
    device.add_gid(1, IBV_GID_TYPE_ROCE_V2, ipv4_gid);
    PeerInfo peer = ethernet_peer();
    peer.gids = {{verbs::GidKind::v1_ipv4, peer_ipv4}};
    EXPECT_NE(message_of([&] {
                open_fake(device)->create_queue({})->connect(peer);
              }).find("here RoCE v2 IPv4 10.0.0.1, at the peer RoCE v1 IPv4 10.0.0.2"),
              std::string::npos);
  }
  {
    FakeDevice device;
    device.is_mlx5 = false;
    EXPECT_TRUE(devx_devices(device.libraries()).empty());
    EXPECT_NE(message_of([&] { open_fake(device); }).find("not a device of the mlx5 driver"),
              std::string::npos);
  }
}

/// For a GPU whose driver exports its memory, which begins 0x20000 bytes into the dma-buf.
class ExportedMemory final : public DeviceMemory {
public:
  std::string text() const override { return "GPU 0"; }
  std::string why_no_dma_buf() const override { return {}; }
  std::optional<DmaBuf> export_dma_buf(std::uintptr_t address, std::size_t size_bytes,
                                       std::string&) const override {
    begin = address;
    exported_bytes = size_bytes;
    return DmaBuf{FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)), 0x20000};
  }
  std::string why_unordered() const override { return {}; }
  bool needs_flush() const override { return true; }
  void flush() const override {}

  mutable std::uintptr_t begin = 0;
  mutable std::size_t exported_bytes = 0;
};

/// GPU memory is registered as by ibrc: transports/verbs/registration.h.
TEST(Mlx5Devx, GpuMemoryIsRegisteredByDmaBuf) {
  FakeDevice device;
  make_ethernet(device);
  device.has_dma_bufs = true;
  const auto hca = open_fake(device);
  const auto memory = std::make_shared<ExportedMemory>();
  const MemoryRequest request{reinterpret_cast<void*>(0x7000001100), 8192, access_all, memory};
  const auto registered = hca->register_memory(request);
  EXPECT_EQ(registered->method(), "dma-buf");
  EXPECT_NE(registered->lkey(), registered->rkey());
  EXPECT_EQ(memory->begin, 0x7000001000u);
  EXPECT_EQ(memory->exported_bytes, 3u * 4096);
  EXPECT_EQ(device.dma_buf.offset_bytes, 0x20100u);
  EXPECT_EQ(device.dma_buf.size_bytes, 8192u);
  EXPECT_EQ(device.dma_buf.address, 0x7000001100u) << "wqes name it as kernels do";
  EXPECT_GE(device.dma_buf.file, 0);
  EXPECT_EQ(::fcntl(device.dma_buf.file, F_GETFD), -1) << "needed for the call only";
  EXPECT_EQ(device.dma_buf.access & IBV_ACCESS_RELAXED_ORDERING, 0) << "signals stay behind data";
}

/// rdma-core has the function since 35, and dma-bufs in it since 44.
TEST(Mlx5Devx, LibrariesThatTakeNoDmaBufOfAQueue) {
  const auto why_not = [](bool has_function, int descriptor) {
    FakeDevice device;
    make_ethernet(device);
    device.failing_call = "umem_reg";
    device.has_umem_reg_ex = has_function;
    const auto hca = open_fake(device);
    alignas(4096) static std::byte memory[std::size_t{1} << 20];
    QpOptions options;
    options.memory = memory;
    options.memory_bytes = sizeof memory;
    options.memory_dmabuf_descriptor = descriptor;
    return message_of([&] { hca->create_queue(options); });
  };
  for (const bool has_function : {true, false}) {
    const std::string message = why_not(has_function, 3);
    EXPECT_NE(message.find("cannot register a QP in GPU memory: libmlx5 (rdma-core before 44)"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("update rdma-core"), std::string::npos) << message;
  }
  EXPECT_NE(why_not(true, -1).find("memory of a QP: Operation not permitted"), std::string::npos);
}

TEST(Mlx5Devx, TheErrorsOfAllRegistrationMethods) {
  const auto why_not = [](bool has_dma_bufs, const std::string& wanted) {
    FakeDevice device;
    make_ethernet(device);
    device.has_dma_bufs = has_dma_bufs;
    device.failing_call = "reg_dmabuf_mr";
    DevxSettings settings;
    settings.options = Options({}, {{"GPUDIRECT", wanted}});
    const auto hca = open_devx_hca(device.libraries(), "mlx5_7", 1, settings);
    return message_of([&] {
      hca->register_memory({reinterpret_cast<void*>(0x7000001000), 4096, access_all,
                            std::make_shared<ExportedMemory>()});
    });
  };
  EXPECT_NE(why_not(true, "dmabuf").find("dma-buf: Operation not permitted"), std::string::npos);
  EXPECT_NE(why_not(false, "dmabuf").find("dma-buf: libibverbs has no ibv_reg_dmabuf_mr"),
            std::string::npos);
  const std::string off = why_not(true, "off");
  EXPECT_NE(off.find("dma-buf: GPUDIRECT=off is set"), std::string::npos) << off;
  EXPECT_NE(off.find("peer memory: GPUDIRECT=off is set"), std::string::npos) << off;
}

TEST(Mlx5Devx, LibrariesOfTheSystem) {
  // Whatever is installed, there is a result.
  std::string why;
  const std::vector<std::string> devices = devx_devices(DevxSettings{}, why);
  EXPECT_EQ(devices.empty(), !why.empty()) << why;
  DevxSettings missing;
  missing.verbs_library = "libno-such-verbs.so.1";
  EXPECT_TRUE(devx_devices(missing, why).empty());
  EXPECT_NE(why.find("libno-such-verbs"), std::string::npos) << why;
  DevxSettings half;
  half.mlx5_library = "libno-such-mlx5.so.1";
  EXPECT_TRUE(devx_devices(half, why).empty());
  EXPECT_THROW(open_devx_hca("mlx5_7", 1, half), Error);
}

} // namespace
} // namespace shmemctl::test

#endif
