// Kernels of two PEs that reach each other by the proxy and by the HCA's queues only: over memory
// of this machine, over libfabric's TCP, and over the HCA in software. The heap is host memory that
// the GPUs map.
#include <gtest/gtest.h>

#include <chrono>
#include <sys/mman.h>
#include <thread>

#include "src/runtime/gpu/cuda_kernel_memory.h"
#include "src/runtime/gpu/device_network.h"
#include "src/runtime/gpu/wait_words.h"
#include "tests/gpu/device_world.h"
#include "tests/gpu/network_kernels.h"
#include "tests/gpu/share.h"
#include "tests/support/transport_world.h"
#include "transports/direct/direct.h"
#include "transports/libfabric/libfabric.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {
namespace {

constexpr int n_pes = 2;
constexpr double wait_s = 20;
const std::uint64_t rounds = share_of(std::uint64_t{20});

struct Network {
  std::string name;
  MakeTransport make;
  std::string path; ///< DEVICE_PATH
  std::map<std::string, std::string> options = {};
  bool one_node = true;
};

/// Heaps of all PEs, in memory that their processes share.
class SharedHeaps {
public:
  static constexpr std::size_t cells_bytes = std::size_t{256} << 10; ///< of one team

  SharedHeaps() {
    static_assert(sizeof(DeviceTeamCells) <= cells_bytes);
    base_ = static_cast<std::byte*>(::mmap(nullptr, n_pes * step_bytes, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED)
      throw std::runtime_error("mmap of the heaps");
  }
  ~SharedHeaps() { ::munmap(base_, n_pes * step_bytes); }
  SharedHeaps(const SharedHeaps&) = delete;
  SharedHeaps& operator=(const SharedHeaps&) = delete;
  std::byte* of(int pe) const { return base_ + static_cast<std::size_t>(pe) * step_bytes; }
  std::byte* cells_of(int pe) const { return of(pe) + NetworkHeap::bytes; }

private:
  static constexpr std::size_t step_bytes = NetworkHeap::bytes + cells_bytes;
  std::byte* base_;
};

/// What a PE's process does.
class NetworkPe {
public:
  NetworkPe(const Network& network, const SharedHeaps& heaps, Bootstrap& bootstrap)
      : bootstrap_(bootstrap), heaps_(heaps), pe_(bootstrap.rank()), options_({}, texts(network)) {
    connect(network);
    open_gpu(network);
  }
  ~NetworkPe() {
    part_.reset();
    mapping_.reset();
    cells_mapping_.reset();
  }
  NetworkPe(const NetworkPe&) = delete;
  NetworkPe& operator=(const NetworkPe&) = delete;

  void barrier() { bootstrap_.barrier(deadline()); }

  void run_operations() {
    DeviceArray<std::byte> away(NetworkShape::n_threads * NetworkHeap::slot_bytes);
    launch([&](cudaStream_t stream, NetworkFindings* findings) {
      launch_network_operations(stream, job_, 1 - pe_, rounds, away.data(), findings);
    });
    std::uint64_t counted = 0;
    std::memcpy(&counted, heaps_.of(pe_) + NetworkHeap::counter, sizeof counted);
    require(counted == NetworkShape::n_threads * rounds,
            "all additions have arrived: " + std::to_string(counted));
  }
  void run_signals() {
    launch([&](cudaStream_t stream, NetworkFindings* findings) {
      launch_network_signals(stream, job_, 1 - pe_, rounds, findings);
    });
  }
  /// Random programs against the sequential model: each PE's words are changed by the other only.
  void run_programs() {
    for (unsigned seed = 1; seed <= share_of(std::uint64_t{8}); ++seed) {
      const RmaPrograms programs(n_pes, seed, 3, 60, 4000, {0, 1});
      static_assert(RmaPrograms::heap_bytes <= NetworkHeap::bytes);
      const std::vector<RmaStep>& steps = programs.steps(pe_);
      DeviceArray<RmaStep> on_device(steps);
      std::memcpy(heaps_.of(pe_), programs.before(pe_).data(), RmaPrograms::heap_bytes);
      launch([&](cudaStream_t stream, NetworkFindings* findings) {
        launch_network_program(stream, job_, on_device.data(), static_cast<int>(steps.size()),
                               findings);
      });
      require(std::memcmp(heaps_.of(pe_), programs.after(pe_).data(), RmaPrograms::heap_bytes) == 0,
              "program " + std::to_string(seed) + " leaves what it has to");
      barrier();
    }
  }
  /// Reductions and an exchange between PEs that reach each other by the network alone.
  void run_collectives() {
    const std::size_t count = few_of(70001); // more than the scratch takes at once
    const std::size_t part = few_of(9001);
    for (const int blocks : {1, 4}) {
      auto* const numbers = numbers_at<std::int32_t>(NetworkHeap::numbers);
      for (std::size_t i = 0; i < count; ++i)
        numbers[i] = sum_number(pe_, i, blocks);
      launch([&](cudaStream_t stream, NetworkFindings* findings) {
        launch_network_sum(stream, job_, blocks, count, findings);
      });
      const auto* const sums = numbers_at<std::int32_t>(NetworkHeap::results);
      for (std::size_t i = 0; i < count; ++i)
        require(sums[i] == sum_number(0, i, blocks) + sum_number(1, i, blocks),
                "sum " + std::to_string(i));
      auto* const wide = numbers_at<std::int64_t>(NetworkHeap::numbers);
      for (std::size_t i = 0; i < n_pes * part; ++i)
        wide[i] = part_number(pe_, i);
      launch([&](cudaStream_t stream, NetworkFindings* findings) {
        launch_network_parts(stream, job_, blocks, part, findings);
      });
      const auto* const seen = numbers_at<std::int64_t>(NetworkHeap::results);
      const std::size_t mine = static_cast<std::size_t>(pe_) * part;
      for (std::size_t i = 0; i < part; ++i) {
        require(seen[i] == std::max(part_number(0, mine + i), part_number(1, mine + i)),
                "largest number " + std::to_string(i));
        for (int from = 0; from < n_pes; ++from)
          require(seen[part * static_cast<std::size_t>(1 + from) + i] ==
                      part_number(from, mine + i),
                  "number " + std::to_string(i) + " of PE " + std::to_string(from));
      }
    }
  }
  /// PE 0's: prints what an entry takes.
  void run_entries(const char* who, int blocks, int threads, std::uint64_t each) {
    DeviceArray<NetworkRate> rate(1);
    const std::uint64_t mine = pe_ == 0 ? each : 0;
    launch([&](cudaStream_t stream, NetworkFindings* findings) {
      launch_network_entries(stream, job_, 1 - pe_, blocks, threads, mine, rate.data(), findings);
    });
    const auto count = static_cast<std::uint64_t>(blocks * threads);
    for (std::uint64_t i = 0; pe_ == 1 && i < count; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, heaps_.of(pe_) + NetworkHeap::slots + i * sizeof value, sizeof value);
      require(value == each, "the last value of thread " + std::to_string(i) + " has arrived");
    }
    const NetworkRate took = rate.values()[0];
    if (pe_ == 0)
      std::printf("entries by %s (%d x %d): %.2f million/s, %.0f cycles of a thread for each\n",
                  who, blocks, threads,
                  static_cast<double>(count * each) * 1e3 / static_cast<double>(took.ns),
                  static_cast<double>(took.cycles) / static_cast<double>(each));
    std::fflush(stdout);
  }
  /// PE 0's: prints where the cycles of a lone entry go.
  void run_entry_parts(std::uint64_t each) {
    DeviceArray<NetworkEntryParts> parts(1);
    const std::uint64_t mine = pe_ == 0 ? each : 0;
    launch([&](cudaStream_t stream, NetworkFindings* findings) {
      launch_network_entry_parts(stream, job_, 1 - pe_, mine, parts.data(), findings);
    });
    if (pe_ != 0)
      return;
    const NetworkEntryParts took = parts.values()[0];
    const auto of_one = [each](std::uint64_t sum) {
      return static_cast<double>(sum) / static_cast<double>(each);
    };
    std::printf("a lone entry, steps timed: %.0f cycles (a reading of the clock %.0f)",
                of_one(took.whole), static_cast<double>(took.clock));
    const char* const names[NetworkEntryParts::count] = {
        "loads", "acquires", "stores",   "read-modify-writes",
        "fence", "record",   "doorbell", "releases"};
    std::uint64_t steps = 0;
    for (int part = 0; part < NetworkEntryParts::count; ++part) {
      std::printf("; %s %.1f x %.0f", names[part], of_one(took.times[part]),
                  static_cast<double>(took.cycles[part]) /
                      static_cast<double>(std::max<std::uint64_t>(took.times[part], 1)));
      steps += took.cycles[part];
    }
    std::printf("; the rest %.0f\n", of_one(took.whole - steps));
    std::fflush(stdout);
    require(took.whole > steps && took.times[NetworkEntryParts::doorbell] > 0,
            "times of the parts");
  }
  void stop() { part_->stop(); }

private:
  static std::size_t few_of(std::size_t count) {
    return std::max<std::size_t>(share_of(std::uint64_t{count}),
                                 std::min<std::size_t>(count, 1001));
  }
  static std::int32_t sum_number(int pe, std::size_t i, int blocks) {
    return static_cast<std::int32_t>(i * 7) * blocks + pe * 1000;
  }
  static std::int64_t part_number(int pe, std::size_t i) {
    return static_cast<std::int64_t>((i * 2654435761u + static_cast<std::size_t>(pe)) % 100003);
  }
  template <class T>
  T* numbers_at(std::uint64_t offset_bytes) const {
    return reinterpret_cast<T*>(heaps_.of(pe_) + offset_bytes);
  }

  static std::map<std::string, std::string> texts(const Network& network) {
    auto all = network.options;
    all["DEVICE_PATH"] = network.path;
    return all;
  }
  static Deadline deadline() { return Deadline::after(std::chrono::duration<double>(2 * wait_s)); }

  void connect(const Network& network) {
    TransportSetup setup{pe_, n_pes, "host", &options_, &health_, wait_s};
    transport_ = network.make(setup);
    TransportPe me;
    me.pe = pe_;
    me.n_pes = n_pes;
    me.transport = transport_.get();
    me.mapped_memory = network.one_node;
    BootstrapExchange exchange(bootstrap_, deadline());
    std::string not_reached;
    const std::vector<PeerPlace> peers = detail::reachable_peers(me, exchange, not_reached);
    require(not_reached.empty(), not_reached);
    transport_->connect(peers, exchange, deadline());
    RegionView view{region::gpu_heap, heaps_.of(pe_), NetworkHeap::bytes, {}};
    RegionView cells{region::gpu_cells, heaps_.cells_of(pe_), SharedHeaps::cells_bytes, {}};
    for (int pe = 0; pe < n_pes; ++pe) {
      view.mapped.push_back(heaps_.of(pe));
      cells.mapped.push_back(heaps_.cells_of(pe));
    }
    register_region({transport_.get()}, view, exchange);
    register_region({transport_.get()}, cells, exchange);
  }

  void open_gpu(const Network& network) {
    std::string why;
    const auto driver = cuda::Driver::open("libcuda.so.1", why);
    require(driver != nullptr, "no driver: " + why);
    device_ = std::make_shared<const cuda::Device>(
        driver, cuda::device_of_pe(pe_, static_cast<int>(driver->devices().size()), {}));
    require_cuda(cudaSetDevice(device_->info().ordinal), "cudaSetDevice");
    stream_ = std::make_unique<cuda::Stream>(device_);
    memory_ = make_cuda_kernel_memory(device_);
    mapping_.emplace(memory_, heaps_.of(pe_), NetworkHeap::bytes);
    cells_mapping_.emplace(memory_, heaps_.cells_of(pe_), SharedHeaps::cells_bytes);
    require_cuda(cudaHostAlloc(&report_, sizeof(WaitReport), cudaHostAllocMapped), "report");
    std::memset(report_, 0, sizeof(WaitReport));
    DeviceNetworkInputs inputs;
    inputs.pe = pe_;
    inputs.n_pes = n_pes;
    inputs.wanted = network.path;
    inputs.mapped = {pe_ == 0, pe_ == 1};
    inputs.mapped_reason = {"a test", "a test"};
    inputs.ways = {transport_.get(), transport_.get()};
    inputs.ibgda = find_ibgda({transport_.get()});
    inputs.reachable = DeviceNetworkInputs::Reachable::host_memory;
    inputs.host_memory = {{heaps_.of(pe_), NetworkHeap::bytes},
                          {heaps_.cells_of(pe_), SharedHeaps::cells_bytes}};
    inputs.proxy.timeout_s = wait_s;
    inputs.health = &health_;
    inputs.memory = memory_;
    part_.emplace(std::move(inputs));
    const GpuWay& way = part_->ways()[static_cast<std::size_t>(1 - pe_)];
    require(way.path == (network.path == "ibgda" ? DevicePath::ibgda : DevicePath::proxy),
            "the path is " + way.reason);
    job_.pe = pe_;
    job_.n_pes = n_pes;
    job_.heap = mapping_->seen(heaps_.of(pe_));
    require(job_.heap == heaps_.of(pe_), "host memory has one address everywhere");
    job_.heap_bytes = NetworkHeap::bytes;
    job_.report = report_;
    job_.timeout_ns = static_cast<std::uint64_t>(wait_s * 1e9);
    job_.network = part_->network();
    make_world();
  }

  /// What collectives need: the other PE is not mapped.
  void make_world() {
    const auto me = static_cast<std::size_t>(pe_);
    std::vector<std::int64_t> deltas(n_pes, DeviceJob::unreachable);
    deltas[me] = 0;
    deltas_.emplace(deltas);
    teams_.emplace(std::vector<TeamState>{{1, pe_, n_pes, 0, 1, 0, 0}});
    job_.heap_delta_bytes = job_.cells_delta_bytes = deltas_->data();
    job_.teams = teams_->data();
    job_.cells = reinterpret_cast<DeviceTeamCells*>(cells_mapping_->seen(heaps_.cells_of(pe_)));
  }

  /// Runs a kernel on all PEs at the same time, to its end.
  template <class Launch>
  void launch(const Launch& launch) {
    DeviceArray<NetworkFindings> findings(1);
    require_cuda(cudaDeviceSynchronize(), "what is before the kernel");
    barrier();
    launch(reinterpret_cast<cudaStream_t>(stream_->get()), findings.data());
    require_cuda(cudaGetLastError(), "launch");
    const Deadline until = deadline();
    while (cudaStreamQuery(reinterpret_cast<cudaStream_t>(stream_->get())) == cudaErrorNotReady) {
      require(!until.passed(), "the kernel ends in time");
      std::this_thread::yield();
    }
    require_cuda(cudaDeviceSynchronize(), "kernel");
    if (report_->state == WaitReport::written)
      throw std::runtime_error(is_of_network(report_->kind)
                                   ? part_->error_of(*report_).message()
                                   : words_of_wait(*report_, pe_, wait_s, "").message);
    part_->check();
    std::string wrong;
    const NetworkFindings found = findings.values()[0];
    for (int i = 0; i < NetworkFindings::count; ++i)
      if (found.wrong[i] != 0)
        wrong += " " + std::to_string(i) + " (" + std::to_string(found.wrong[i]) + " times)";
    require(wrong.empty(), "these expectations of network_kernels.cu were met:" + wrong);
    barrier();
  }

  Bootstrap& bootstrap_;
  const SharedHeaps& heaps_;
  int pe_;
  Options options_;
  JobHealth health_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<const cuda::Device> device_;
  std::unique_ptr<cuda::Stream> stream_;
  std::shared_ptr<KernelMemory> memory_;
  std::optional<KernelMapping> mapping_, cells_mapping_;
  std::optional<DeviceArray<std::int64_t>> deltas_;
  std::optional<DeviceArray<TeamState>> teams_;
  WaitReport* report_ = nullptr;
  std::optional<DeviceNetworkPart> part_;
  DeviceJob job_{};
};

/// Runs `body` in a process for each PE; what went wrong.
std::string run_network_pes(const Network& network, const std::function<void(NetworkPe&)>& body) {
  const SharedHeaps heaps;
  BootstrapArea area(n_pes);
  ForkedPes pes(n_pes, [&](int pe) {
    // Else a kernel that waits may keep another one from being loaded.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    ThreadBootstrap bootstrap(area, pe);
    NetworkPe me(network, heaps, bootstrap);
    body(me);
    me.stop();
    me.barrier(); // nobody's memory goes while another one may use it
  });
  std::string problems;
  for (const std::string& end : pes.ends())
    problems += end.empty() ? "" : end + "\n";
  return problems;
}

const std::map<std::string, std::string> software_hca = {{"MLX5_DEVICE", "soft"},
                                                         {"SOFT_HCA_OVER", "shm"}};

class KernelsOverNetworks : public testing::TestWithParam<Network> {};

TEST_P(KernelsOverNetworks, MoveDataAndSignalEachOther) {
  if (count_gpus() == 0)
    GTEST_SKIP() << "no GPU";
  EXPECT_EQ(run_network_pes(GetParam(),
                            [](NetworkPe& me) {
                              me.run_operations();
                              me.run_signals();
                              me.run_collectives();
                              me.run_programs();
                            }),
            "");
}

/// What it takes to build an entry, whatever the HCA does with it: the queues have room for all, so
/// that none waits for the HCA, and the quiet is behind the time.
TEST(KernelsOverIbgda, EntriesPerSecond) {
  if (count_gpus() == 0)
    GTEST_SKIP() << "no GPU";
  auto options = software_hca;
  options["QP_DEPTH"] = "16384";
  for (const char* const queues : {"1", "8"}) {
    options["IBGDA_NUM_RC_PER_PE"] = queues;
    std::printf("queues: %s\n", queues);
    EXPECT_EQ(run_network_pes({"ibgda_software", make_ibgda_transport, "ibgda", options},
                              [](NetworkPe& me) {
                                me.run_entries("one thread", 1, 1, share_of(std::uint64_t{4000}));
                                me.run_entry_parts(share_of(std::uint64_t{4000}));
                                me.run_entries("one warp", 1, 32, share_of(std::uint64_t{400}));
                                me.run_entries("all multiprocessors, a thread", 132, 1,
                                               share_of(std::uint64_t{120}));
                                me.run_entries("all multiprocessors, a warp", 132, 32, 3);
                              }),
              "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, KernelsOverNetworks,
    testing::Values(Network{"proxy_shm", [](const TransportSetup&) { return make_shm_transport(); },
                            "proxy"},
                    Network{"proxy_libfabric_tcp",
                            make_libfabric_transport,
                            "proxy",
                            {{"LIBFABRIC_PROVIDER", "tcp"}, {"LIBFABRIC_PROFILE", ""}},
                            false},
                    Network{"ibgda_software", make_ibgda_transport, "ibgda", software_hca}),
    [](const auto& tested) { return tested.param.name; });

} // namespace
} // namespace shmemctl::test
