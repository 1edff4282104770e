// Figures of the mlx5 layer: send queue entries that one thread builds and the emulated HCA carries
// out on another processor, for 8-byte writes to shared memory, by themselves and by the
// transports' put; and what one of them takes there and back.
#include <benchmark/benchmark.h>

#include <chrono>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include "tests/support/transport_world.h"
#include "transports/ibdevx/ibdevx.h"
#include "transports/ibgda/ibgda.h"
#include "transports/mlx5/emulated/emulated_hca.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/host_qp.h"

using namespace shmemctl;
using namespace shmemctl::mlx5;

namespace {

/// Keeps this thread, and those that it starts from now on, on the `number`-th processor it may
/// use.
void pin(std::size_t number) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  number %= static_cast<std::size_t>(CPU_COUNT(&allowed));
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && number-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ::sched_setaffinity(0, sizeof one, &one);
      return;
    }
}

/// A queue to memory that is shared as between processes. The HCA has the first processor.
struct World {
  static constexpr std::size_t size_bytes = 1 << 20;
  std::byte* memory;
  std::shared_ptr<MappedExecutor> way = std::make_shared<MappedExecutor>();
  std::unique_ptr<EmulatedHca> hca;
  std::unique_ptr<HcaMemory> registered;
  JobHealth health;
  std::unique_ptr<HostQp> queue;

  explicit World(const QpOptions& options)
      : memory(static_cast<std::byte*>(::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {
    EmulatedHcaOptions emulated;
    emulated.path_to_peer = [this](const PeerInfo&) { return way; };
    emulated.idle_spins = 1 << 30;
    pin(0);
    hca = std::make_unique<EmulatedHca>(emulated);
    pin(1);
    registered = hca->register_memory({memory, size_bytes});
    way->add({registered->rkey(), reinterpret_cast<std::uint64_t>(memory), size_bytes, access_all,
              memory});
    queue = std::make_unique<HostQp>(*hca, options, health, 1, std::chrono::seconds(60));
    PeerInfo peer = queue->local();
    queue->connect(peer);
  }
  ~World() {
    queue.reset();
    registered.reset();
    hca.reset();
    ::munmap(memory, size_bytes);
  }
  RaddrSegment at(std::size_t offset) const {
    return {reinterpret_cast<std::uint64_t>(memory) + offset, registered->rkey()};
  }
};

enum Way { inline_value, from_memory };

/// Arguments: Way, entries per doorbell, CqMode (0 ring, 1 collapsed).
void wqes(benchmark::State& state) {
  const auto per_doorbell = static_cast<std::uint64_t>(state.range(1));
  QpOptions options;
  options.completions = state.range(2) == 0 ? CqMode::ring : CqMode::collapsed;
  World world(options);
  constexpr std::uint64_t count = 1 << 21;
  std::uint64_t value = 0;
  for (auto _ : state) {
    for (std::uint64_t i = 1; i <= count; ++i) {
      const Post post{i % per_doorbell == 0 ? DoorbellMode::now : DoorbellMode::later, false,
                      false};
      const RaddrSegment remote = world.at(4096 + i * 8 % 65536);
      ++value;
      if (state.range(0) == inline_value)
        world.queue->write_inline(remote, &value, 8, post);
      else
        world.queue->write(remote, world.memory, world.registered->lkey(), 8, post);
    }
    world.queue->quiet();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

/// The same by puts of a transport, which looks up addresses and keys, and a quiet at the end.
/// Argument: 0 ibdevx, 1 ibgda.
void transport_puts(benchmark::State& state) {
  test::TransportWorldOptions wanted;
  wanted.n_pes = 1;
  wanted.mapped_memory = true;
  wanted.options = {{"MLX5_DEVICE", "emulated"}, {"EMULATED_HCA_OVER", "shm"}};
  test::BootstrapArea area(1);
  test::ThreadBootstrap bootstrap(area, 0);
  JobHealth health;
  constexpr std::uint64_t count = 1 << 21;
  pin(0);
  test::run_transport_pe(
      state.range(0) == 0 ? make_ibdevx_transport : make_ibgda_transport,
      [&](test::TransportPe& me) {
        pin(1);
        std::uint64_t value = 0;
        for (auto _ : state) {
          for (std::uint64_t i = 0; i < count; ++i) {
            ++value;
            me.transport->put(0, {0, region::heap, 4096 + i * 8 % 65536}, &value, 8, false);
          }
          me.transport->quiet(0);
        }
      },
      wanted, bootstrap, health);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

/// One write and its completion.
void write_and_wait(benchmark::State& state) {
  World world({});
  std::uint64_t value = 0;
  for (auto _ : state) {
    ++value;
    world.queue->wait(
        world.queue->write_inline(world.at(4096), &value, 8, {DoorbellMode::now, true, false}));
  }
}

void fetch_add(benchmark::State& state) {
  World world({});
  for (auto _ : state)
    benchmark::DoNotOptimize(world.queue->fetch(world.at(4096), atomic_add(8, 1)));
}

} // namespace

BENCHMARK(wqes)
    ->ArgNames({"memory", "per_doorbell", "collapsed"})
    ->ArgsProduct({{inline_value, from_memory}, {1, 16}, {0, 1}})
    ->UseRealTime();
BENCHMARK(transport_puts)->ArgName("ibgda")->Arg(0)->Arg(1)->UseRealTime();
BENCHMARK(write_and_wait)->UseRealTime();
BENCHMARK(fetch_add)->UseRealTime();

BENCHMARK_MAIN();
