// What PEs have in tests of kernels over networks: heaps in host memory that the GPUs map, a
// transport, and a GPU.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include "src/runtime/gpu/cuda_kernel_memory.h"
#include "src/runtime/gpu/device_network.h"
#include "src/runtime/gpu/wait_error_text.h"
#include "tests/gpu/device_world.h"
#include "tests/gpu/network_kernels.h"
#include "tests/support/transport_world.h"

namespace shmemctl::test {

struct Network {
  static constexpr int n_pes = 2;

  std::string name;
  MakeTransport make;
  std::string path; ///< DEVICE_PATH
  std::map<std::string, std::string> options = {};
  bool one_node = true;
};

/// Heaps of all PEs, in memory that their processes share.
class SharedHeaps {
public:
  static constexpr std::size_t cells_bytes = std::size_t{256} << 10; ///< cells of one team

  SharedHeaps() {
    static_assert(sizeof(DeviceTeamFlags) <= cells_bytes);
    base_ =
        static_cast<std::byte*>(::mmap(nullptr, Network::n_pes * step_bytes, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED)
      throw std::runtime_error("mmap of the heaps");
  }
  ~SharedHeaps() { ::munmap(base_, Network::n_pes * step_bytes); }
  SharedHeaps(const SharedHeaps&) = delete;
  SharedHeaps& operator=(const SharedHeaps&) = delete;
  std::byte* of(int pe) const { return base_ + static_cast<std::size_t>(pe) * step_bytes; }
  std::byte* cells_of(int pe) const { return of(pe) + NetworkHeap::bytes; }

private:
  static constexpr std::size_t step_bytes = NetworkHeap::bytes + cells_bytes;
  std::byte* base_;
};

/// A PE in its process; tests derive theirs.
class NetworkPeBase {
public:
  NetworkPeBase(const Network& network, const SharedHeaps& heaps, Bootstrap& bootstrap)
      : heaps_(heaps), pe_(bootstrap.rank()), bootstrap_(bootstrap), options_({}, texts(network)) {
    connect(network);
    open_gpu(network);
  }
  NetworkPeBase(const NetworkPeBase&) = delete;
  NetworkPeBase& operator=(const NetworkPeBase&) = delete;

  void barrier() { bootstrap_.barrier(deadline()); }
  void stop() { part_->stop(); }

protected:
  static constexpr int n_pes = Network::n_pes;

  ~NetworkPeBase() {
    part_.reset();
    mapping_.reset();
    cells_mapping_.reset();
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
                                   : describe_wait(*report_, pe_, wait_s, "").message);
    part_->check();
    std::string wrong;
    const NetworkFindings found = findings.values()[0];
    for (int i = 0; i < NetworkFindings::count; ++i)
      if (found.wrong[i] != 0)
        wrong += " " + std::to_string(i) + " (" + std::to_string(found.wrong[i]) + " times)";
    require(wrong.empty(), "these expectations of network_kernels.cu were met:" + wrong);
    barrier();
  }

  const SharedHeaps& heaps_;
  int pe_;
  DeviceJob job_{};

private:
  static constexpr double wait_s = 20;

  static Deadline deadline() { return Deadline::after(std::chrono::duration<double>(2 * wait_s)); }
  static std::map<std::string, std::string> texts(const Network& network) {
    auto all = network.options;
    all["DEVICE_PATH"] = network.path;
    return all;
  }

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
    const std::vector<PeerLocation> peers = detail::reachable_peers(me, exchange, not_reached);
    require(not_reached.empty(), not_reached);
    transport_->connect(peers, exchange, deadline());
    RegionView view{region::gpu_heap, heaps_.of(pe_), NetworkHeap::bytes, {}};
    RegionView cells{region::gpu_team_flags, heaps_.cells_of(pe_), SharedHeaps::cells_bytes, {}};
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
    inputs.transports_by_pe = {transport_.get(), transport_.get()};
    inputs.ibgda = find_ibgda({transport_.get()});
    inputs.reachable = DeviceNetworkInputs::Reachable::host_memory;
    inputs.host_memory = {{heaps_.of(pe_), NetworkHeap::bytes},
                          {heaps_.cells_of(pe_), SharedHeaps::cells_bytes}};
    inputs.proxy.timeout_s = wait_s;
    inputs.health = &health_;
    inputs.memory = memory_;
    part_.emplace(std::move(inputs));
    const KernelPath& way = part_->paths_by_pe()[static_cast<std::size_t>(1 - pe_)];
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
    job_.heap_delta_bytes = job_.team_flags_delta_bytes = deltas_->data();
    job_.teams = teams_->data();
    job_.cells = reinterpret_cast<DeviceTeamFlags*>(cells_mapping_->seen(heaps_.cells_of(pe_)));
  }

  Bootstrap& bootstrap_;
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
};

} // namespace shmemctl::test
