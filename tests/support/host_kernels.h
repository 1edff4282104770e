// Runs the device headers on threads of the host: a job whose PEs share this process, each with
// blocks of a few threads. For programs compiled with tests/support/device_on_host before all other
// include directories.
#pragma once

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/shmem_device.cuh"

namespace shmemctl::test {

struct HostShape {
  int blocks = 1, threads = 1;
  int columns = 0; ///< columns of a grid of two or three dimensions, which divides `blocks`; 0: one
  int planes = 1;
};

class HostKernels {
public:
  static constexpr int world = 0, even = 1, ends = 2;

  HostKernels(int n_pes, std::size_t heap_bytes, double wait_s = timeout_s()) {
    for (int pe = 0; pe < n_pes; ++pe)
      pes_.push_back(std::make_unique<Pe>(heap_bytes));
    for (int pe = 0; pe < n_pes; ++pe)
      fill(pe, n_pes, heap_bytes, wait_s);
  }

  /// That PE's calls by NVSHMEM's names check their arguments.
  void check_calls(int pe) {
    Pe& mine = *pes_[static_cast<std::size_t>(pe)];
    mine.pending = std::make_unique<PendingTransfers>();
    mine.job.pending = mine.pending.get();
    mine.job.checked = 1;
  }
  DeviceJob& job(int pe) { return pes_[static_cast<std::size_t>(pe)]->job; }
  device::HostNetwork& network(int pe) { return pes_[static_cast<std::size_t>(pe)]->network; }
  const WaitReport& report(int pe) const { return pes_[static_cast<std::size_t>(pe)]->report; }
  /// As the host does that has read it.
  void clear_report(int pe) { pes_[static_cast<std::size_t>(pe)]->report = {}; }
  /// Until that PE has reported, for a minute at most; the caller checks whether it has.
  void wait_for_report(int pe) {
    wait_for([&] { return device::load_acquire(&report(pe).state) == WaitReport::written; });
  }
  /// Called by a thread of a kernel, so that a short timeout begins when other threads have come,
  /// however loaded the machine is: waits until `ready()`, for a minute at most.
  template <class Ready>
  static void wait_for(const Ready& ready) {
    const auto begin = std::chrono::steady_clock::now();
    while (!ready() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60))
      std::this_thread::yield();
  }
  /// Another team than those three, as PE `pe` knows it.
  void set_team(int pe, int number, const TeamState& team) {
    pes_[static_cast<std::size_t>(pe)]->teams[static_cast<std::size_t>(number)] = team;
  }
  /// Unmaps that PE's heap on every PE except that PE.
  void unmap(int pe) {
    for (std::size_t other = 0; other < pes_.size(); ++other)
      if (other != static_cast<std::size_t>(pe)) {
        pes_[other]->heap_deltas[static_cast<std::size_t>(pe)] = DeviceJob::unreachable;
        show_deltas(*pes_[other]);
      }
  }

  /// PEs of different nodes reach each other by the network only.
  void put_on_nodes(const std::vector<int>& node_of_pe) {
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
      Pe& mine = *pes_[pe];
      for (std::size_t other = 0; other < pes_.size(); ++other) {
        const bool near = node_of_pe[pe] == node_of_pe[other];
        mine.paths.push_back(
            static_cast<std::uint8_t>(near ? DevicePath::load_store : DevicePath::proxy));
        if (!near)
          mine.heap_deltas[other] = mine.cells_deltas[other] = DeviceJob::unreachable;
        mine.network.add_pe(pes_[other]->job.heap,
                            reinterpret_cast<std::byte*>(pes_[other]->cells.data()));
      }
      mine.job.network.path_of_pe = mine.paths.data();
      show_deltas(mine);
    }
  }

  /// From now on the network keeps operations under way across calls, and they overtake each other.
  void keep_in_flight(std::uint32_t seed = 1) {
    flight_ = std::make_unique<device::HostFlight>(seed);
    for (const std::unique_ptr<Pe>& pe : pes_)
      pe->network.keep_in(flight_.get());
  }

  /// Every thread of every block of every PE calls it; returns when all have returned.
  void run(HostShape shape, const std::function<void(const DeviceJob&)>& kernel) {
    ++device::host_launches;
    Running running;
    for (const std::unique_ptr<Pe>& pe : pes_)
      start(*pe, shape, kernel, running);
    running.join();
  }
  /// Runs the kernel of one PE, from a thread of the test that stands for its host.
  void run_on(int pe, HostShape shape, const std::function<void(const DeviceJob&)>& kernel) {
    ++device::host_launches;
    Running running;
    start(*pes_[static_cast<std::size_t>(pe)], shape, kernel, running);
    running.join();
  }

  /// Shorter where waits are expected to fail.
  static double timeout_s() {
    const char* const said = std::getenv("SHMEMCTL_DEVICE_WAIT_S");
    return said != nullptr ? std::atof(said) : 100;
  }

private:
  struct Pe {
    explicit Pe(std::size_t heap_bytes)
        : heap(heap_bytes / 16), cells(limits::max_teams), teams(limits::max_teams, free_team(0)) {}
    std::vector<int4> heap; // aligned to 16 bytes
    std::vector<DeviceTeamFlags> cells;
    std::vector<TeamState> teams;
    std::vector<std::int32_t> members;
    std::vector<std::int64_t> heap_deltas, cells_deltas;
    std::vector<std::uint8_t> paths;
    device::HostNetwork network;
    std::unique_ptr<PendingTransfers> pending;
    WaitReport report{};
    DeviceJob job{};
  };

  struct Running {
    std::vector<std::unique_ptr<device::HostBlock>> blocks;
    std::vector<std::thread> threads;
    void join() {
      for (std::thread& thread : threads)
        thread.join();
    }
  };
  /// `kernel` outlives the threads.
  static void start(Pe& pe, HostShape shape, const std::function<void(const DeviceJob&)>& kernel,
                    Running& running) {
    for (int block = 0; block < shape.blocks; ++block) {
      running.blocks.push_back(std::make_unique<device::HostBlock>(shape.threads));
      for (int thread = 0; thread < shape.threads; ++thread)
        running.threads.emplace_back(
            [&kernel, &pe, at = running.blocks.back().get(), shape, block, thread] {
              device::threadIdx.x = static_cast<unsigned>(thread);
              device::blockDim.x = static_cast<unsigned>(shape.threads);
              place_block(shape, static_cast<unsigned>(block));
              device::host_block = at;
              device::host_network = &pe.network;
              device::host_deliver =
                  pe.network.flight() != nullptr ? device::host_deliver_due : nullptr;
              kernel(pe.job);
              device::host_yield();
            });
    }
  }

  static void place_block(const HostShape& shape, unsigned block) {
    const auto planes = static_cast<unsigned>(shape.planes);
    const auto of_plane = static_cast<unsigned>(shape.blocks) / planes;
    const unsigned columns = shape.columns > 0 ? static_cast<unsigned>(shape.columns) : of_plane;
    device::gridDim = {columns, of_plane / columns, planes};
    device::blockIdx = {block % columns, block / columns % device::gridDim.y, block / of_plane};
  }
  static std::int64_t distance(const void* from, const void* to) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) -
                                     reinterpret_cast<std::uintptr_t>(from));
  }
  /// Passes the deltas to every other PE by value; the other PEs load the tables.
  static void show_deltas(Pe& pe) {
    if (pe.job.pe % 2 == 0)
      set_param_deltas(pe.job, pe.heap_deltas.data(), pe.cells_deltas.data());
  }
  void fill(int number, int n, std::size_t heap_bytes, double wait_s) {
    Pe& pe = *pes_[static_cast<std::size_t>(number)];
    for (const std::unique_ptr<Pe>& other : pes_) {
      pe.heap_deltas.push_back(distance(pe.heap.data(), other->heap.data()));
      pe.cells_deltas.push_back(distance(pe.cells.data(), other->cells.data()));
    }
    pe.teams[world] = {1, number, n, 0, 1, 0, 0};
    pe.teams[even] = {1, number % 2 == 0 ? number / 2 : -1, (n + 1) / 2, 0, 2, 0, 0};
    pe.teams[ends] = {1, number == n - 1 ? 0 : number == 0 ? 1 : -1, n > 1 ? 2 : 1, 0, 0, 1, 0};
    pe.members = {-1, n - 1, 0};
    pe.job.pe = number;
    pe.job.n_pes = n;
    pe.job.heap = reinterpret_cast<std::byte*>(pe.heap.data());
    pe.job.heap_bytes = heap_bytes;
    pe.job.heap_delta_bytes = pe.heap_deltas.data();
    pe.job.cells = pe.cells.data();
    pe.job.team_flags_delta_bytes = pe.cells_deltas.data();
    show_deltas(pe);
    pe.job.teams = pe.teams.data();
    pe.job.members = pe.members.data();
    pe.job.report = &pe.report;
    pe.job.timeout_ns = static_cast<std::uint64_t>(wait_s * 1e9);
  }

  std::vector<std::unique_ptr<Pe>> pes_;
  std::unique_ptr<device::HostFlight> flight_;
};

} // namespace shmemctl::test
