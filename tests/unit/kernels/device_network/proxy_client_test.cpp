// Kernels' requests through the proxy: threads in a kernel's place, the real proxy, memory.
#include "tests/support/counting_transport.h"
#include "tests/support/expect_error.h"
#include "tests/support/no_transport.h"
#include "tests/unit/kernels/device_network/kernel_threads.h"
#include "tests/unit/runtime/proxy/memory_world.h"

namespace shmemctl::test {
namespace {

constexpr int n_pes = 3;
constexpr unsigned n_threads = 4;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr std::uint64_t rounds = 200;
#else
constexpr std::uint64_t rounds = 1'000;
#endif

ProxyRequest request_to(ProxyOp op, int pe, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  ProxyRequest request;
  request.op = op;
  request.region = 1;
  request.pe = pe;
  request.offset_bytes = offset_bytes;
  request.size_bytes = size_bytes;
  return request;
}

/// PE 0 of a world, whose kernels take the proxy.
struct Pe {
  explicit Pe(const ProxyOptions& options = {}) {
    DeviceNetworkInputs inputs = inputs_of(0, world.ways(), "proxy", world.health, memory);
    inputs.proxy = options;
    // The range includes the thread's own words.
    inputs.host_memory = {{nullptr, ~std::size_t{0}}};
    part.emplace(std::move(inputs));
  }

  MemoryWorld world{n_pes};
  std::shared_ptr<PlainKernelMemory> memory = std::make_shared<PlainKernelMemory>();
  std::optional<DeviceNetworkPart> part;
};

/// What a thread does to its own words of each PE.
void every_operation(const DeviceNetwork& network, MemoryWorld& world, std::uint32_t number) {
  ThreadWait wait;
  ThreadProxy proxy(network, number, wait);
  const std::uint64_t mine = 64 + number * 64;
  std::uint64_t value = 0;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const int pe = 1 + static_cast<int>(round % 2);
    std::uint64_t source = round << 8 | number;
    ProxyRequest put = request_to(ProxyOp::put, pe, mine, 8);
    put.local = reinterpret_cast<std::uint64_t>(&source);
    ASSERT_TRUE(proxy.ask(put, value));
    ProxyRequest put_value = request_to(ProxyOp::put_value, pe, mine + 8, 8);
    put_value.operand = round;
    ASSERT_TRUE(proxy.post(put_value));
    ASSERT_TRUE(proxy.ask(request_to(ProxyOp::get_value, pe, mine + 8, 8), value));
    ASSERT_EQ(value, round);
    ProxyRequest add = request_to(ProxyOp::atomic, pe, 0, 8);
    add.detail = static_cast<std::uint8_t>(AtomicOp::add);
    add.operand = 1;
    ASSERT_TRUE(proxy.post(add));
    add.offset_bytes = mine + 16;
    ASSERT_TRUE(proxy.ask(add, value));
    ASSERT_EQ(value, (round - 1) / 2);
    ASSERT_TRUE(proxy.fence());
    std::uint64_t target = 0;
    ProxyRequest get = request_to(ProxyOp::get, pe, mine, 8);
    get.local = reinterpret_cast<std::uint64_t>(&target);
    ASSERT_TRUE(round % 3 == 0 ? proxy.post(get) && proxy.quiet() : proxy.ask(get, value));
    ASSERT_EQ(target, source);
  }
  ASSERT_TRUE(proxy.quiet());
  EXPECT_EQ(world.word(1, mine + 16) + world.word(2, mine + 16), rounds);
}

void run_threads(const ProxyOptions& options) {
  Pe pe(options);
  const DeviceNetwork network = pe.part->network();
  EXPECT_EQ(network.path_of_pe[0], static_cast<std::uint8_t>(DevicePath::load_store));
  EXPECT_EQ(network.path_of_pe[1], static_cast<std::uint8_t>(DevicePath::proxy));
  EXPECT_EQ(pe.part->paths_by_pe()[1].reason, "SHMEMCTL_DEVICE_PATH=proxy: proxy over shm");
  run_kernel(n_threads, [&](std::uint32_t number) { every_operation(network, pe.world, number); });
  pe.part->check();
  pe.part->stop();
  EXPECT_EQ(pe.world.word(1, 0) + pe.world.word(2, 0), n_threads * rounds);
}

TEST(ProxyClient, EveryOperationByManyThreads) {
  run_threads({});
}

/// Slots of the ring and of results run out all the time.
TEST(ProxyClient, ATinyRingAndTwoResults) {
  ProxyOptions options;
  options.capacity = 4;
  options.n_results = 2;
  options.limits = {3, 2};
  options.first_sequence = ProxyTraits::Sequence::mask - 1000; // wraps in the middle
  run_threads(options);
}

TEST(ProxyClient, SeveralRings) {
  ProxyOptions options;
  options.threads = 2;
  options.capacity = 16;
  options.n_results = 3;
  run_threads(options);
}

TEST(ProxyClient, AStopCarriesOutWhatIsInTheRing) {
  Pe pe;
  const DeviceNetwork network = pe.part->network();
  run_kernel(n_threads, [&](std::uint32_t number) {
    ThreadWait wait;
    ThreadProxy proxy(network, number, wait);
    ProxyRequest add = request_to(ProxyOp::atomic, 2, 0, 8);
    add.detail = static_cast<std::uint8_t>(AtomicOp::add);
    add.operand = 1;
    for (int i = 0; i < 1000; ++i)
      ASSERT_TRUE(proxy.post(add));
  });
  pe.part->stop();
  EXPECT_EQ(pe.world.word(2, 0), n_threads * 1000u);
  ThreadWait wait;
  ThreadProxy late(network, 0, wait);
  EXPECT_FALSE(late.post(request_to(ProxyOp::put_value, 1, 8, 8)));
  EXPECT_EQ(late.problem().kind, WaitKind::fifo_closed);
  pe.part->stop();
}

/// Fails, or waits, as it is told.
class UnwellTransport final : public NoTransport {
public:
  std::atomic<bool> holds{false};
  std::atomic<bool> fails{false};

  const char* name() const override { return "unwell"; }
  void put(int, const RemoteAddress&, const void*, std::size_t, bool) override { act(); }
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override { act(); }
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override {
    act();
    return 0;
  }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override {
    act();
  }

private:
  void act() const {
    while (holds)
      std::this_thread::yield();
    if (fails)
      throw Error(ExitCode::unavailable, "unwell0:1", "put to PE 1", "cable cut", "look at it");
  }
};

TEST(ProxyClient, AFailureOfTheTransportReachesKernelAndHost) {
  UnwellTransport transport;
  transport.fails = true;
  JobHealth health;
  auto memory = std::make_shared<PlainKernelMemory>();
  DeviceNetworkPart part(inputs_of(0, {&transport, &transport}, "proxy", health, memory));
  const DeviceNetwork network = part.network();
  run_kernel(n_threads, [&](std::uint32_t number) {
    ThreadWait wait;
    ThreadProxy proxy(network, number, wait);
    std::uint64_t value = 0;
    EXPECT_FALSE(proxy.ask(request_to(ProxyOp::get_value, 1, 0, 8), value));
    EXPECT_EQ(proxy.problem().kind, WaitKind::fifo_failed);
    EXPECT_TRUE(proxy.post(request_to(ProxyOp::put_value, 1, 0, 8)));
    EXPECT_FALSE(proxy.quiet()) << "what was posted was not carried out";
  });
  expect_error(ExitCode::unavailable, {"unwell0:1", "cable cut"}, [&] { part.check(); });
  WaitReport report{};
  report.kind = WaitKind::fifo_failed;
  report.peer = 1;
  EXPECT_NE(part.error_of(report).message().find("cable cut"), std::string::npos);
  expect_error(ExitCode::unavailable, {"cable cut"}, [&] { part.stop(); });
}

/// No wait exceeds its timeout, and the report names its target.
TEST(ProxyClient, WaitsGiveUp) {
  UnwellTransport transport;
  transport.holds = true;
  JobHealth health;
  auto memory = std::make_shared<PlainKernelMemory>();
  DeviceNetworkInputs inputs = inputs_of(0, {&transport, &transport}, "proxy", health, memory);
  inputs.proxy.capacity = 2;
  inputs.proxy.limits = {1, 1};
  inputs.proxy.n_results = 2;
  DeviceNetworkPart part(std::move(inputs));
  const DeviceNetwork network = part.network();
  const auto problem_of = [&](const auto& call) {
    ThreadWait wait(20);
    ThreadProxy proxy(network, 0, wait);
    EXPECT_FALSE(call(proxy));
    return proxy.problem().kind;
  };
  const auto ask = [](ThreadProxy& proxy) {
    std::uint64_t value = 0;
    return proxy.ask(request_to(ProxyOp::get_value, 1, 0, 8), value);
  };
  EXPECT_EQ(problem_of(ask), WaitKind::fifo_reply);
  EXPECT_EQ(problem_of([](ThreadProxy& proxy) { return proxy.quiet(); }), WaitKind::fifo_reply);
  EXPECT_EQ(problem_of(ask), WaitKind::fifo_result) << "both are taken, and stay so";
  const auto post = [](ThreadProxy& proxy) {
    return proxy.post(request_to(ProxyOp::put_value, 1, 0, 8)) &&
           proxy.post(request_to(ProxyOp::put_value, 1, 0, 8)) &&
           proxy.post(request_to(ProxyOp::put_value, 1, 0, 8));
  };
  EXPECT_EQ(problem_of(post), WaitKind::fifo_room);
  WaitReport report{};
  report.kind = WaitKind::fifo_room;
  report.peer = 1;
  report.block = 7;
  report.expected = 4;
  const Error error = part.error_of(report);
  EXPECT_EQ(error.code(), ExitCode::deadline);
  for (const char* word : {"block 7", "PE 1", "has no slot", "proxy over unwell"})
    EXPECT_NE(error.message().find(word), std::string::npos) << word << ": " << error.message();
  transport.holds = false;
}

/// Memory that the transport cannot reach is copied; other memory is used directly.
TEST(ProxyClient, MemoryOfTheDeviceIsCopied) {
  MemoryWorld world(2, 8 << 20);
  std::vector<std::byte> host(16), device(std::size_t{5} << 19);
  for (std::size_t i = 0; i < device.size(); ++i)
    device[i] = static_cast<std::byte>(i * 7 + i / 256);
  auto memory = std::make_shared<PlainKernelMemory>();
  DeviceNetworkInputs inputs = inputs_of(0, world.ways(), "proxy", world.health, memory);
  inputs.host_memory = {{host.data(), host.size()}};
  DeviceNetworkPart part(std::move(inputs));
  const DeviceNetwork network = part.network();
  ThreadWait wait;
  ThreadProxy proxy(network, 0, wait);
  std::uint64_t none = 0;
  const int before = memory->copies;
  ProxyRequest put = request_to(ProxyOp::put, 1, 0, 16);
  put.local = reinterpret_cast<std::uint64_t>(host.data());
  ASSERT_TRUE(proxy.ask(put, none));
  ProxyRequest value = request_to(ProxyOp::put_value, 1, 32, 8);
  value.operand = 5;
  ASSERT_TRUE(proxy.post(value) && proxy.ask(request_to(ProxyOp::get_value, 1, 32, 8), none));
  EXPECT_EQ(none, 5u);
  EXPECT_EQ(memory->copies, before);
  ProxyRequest signal = request_to(ProxyOp::put_signal, 1, 64, device.size());
  signal.local = reinterpret_cast<std::uint64_t>(device.data());
  signal.detail = signal_detail(1, true);
  signal.compare = 40;
  signal.operand = 3;
  ASSERT_TRUE(proxy.post(signal) && proxy.quiet());
  EXPECT_EQ(memory->copies, before + 3) << "two pieces of 1 MiB, and the rest";
  EXPECT_EQ(world.word(1, 40), 3u);
  EXPECT_EQ(std::memcmp(&world.word(1, 64), device.data(), device.size()), 0);
  std::vector<std::byte> back(device.size());
  ProxyRequest get = request_to(ProxyOp::get, 1, 64, back.size());
  get.local = reinterpret_cast<std::uint64_t>(back.data());
  ASSERT_TRUE(proxy.ask(get, none));
  EXPECT_EQ(back, device);
  EXPECT_EQ(memory->copies, before + 6);
  part.refresh({{host.data(), host.size()}, {back.data(), back.size()}});
  ASSERT_TRUE(proxy.ask(get, none));
  EXPECT_EQ(memory->copies, before + 6);
  part.stop();
}

} // namespace
} // namespace shmemctl::test
