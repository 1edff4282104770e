// Kernels of two PEs that reach each other by the proxy and by the HCA's queues only: over memory
// of this machine, over libfabric's TCP, and over the emulated HCA. The heap is host memory that
// the GPUs map.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "tests/gpu/network_pe_base.h"
#include "tests/gpu/share.h"
#include "transports/ibdevx/ibdevx.h"
#include "transports/ibgda/ibgda.h"
#include "transports/libfabric/libfabric.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {
namespace {

const std::uint64_t rounds = share_of(std::uint64_t{20});

/// What a PE's process does.
class NetworkPe : public NetworkPeBase {
public:
  using NetworkPeBase::NetworkPeBase;

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
  /// PE 0's: prints what a WQE takes.
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
      std::printf("WQEs by %s (%d x %d): %.2f million/s, %.0f cycles of a thread for each\n", who,
                  blocks, threads,
                  static_cast<double>(count * each) * 1e3 / static_cast<double>(took.ns),
                  static_cast<double>(took.cycles) / static_cast<double>(each));
    std::fflush(stdout);
  }
  /// PE 0's: prints where the cycles of a single WQE go.
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
    std::printf("a single WQE, steps timed: %.0f cycles (a reading of the clock %.0f)",
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
};

/// Runs `body` in a process for each PE; what went wrong.
std::string run_network_pes(const Network& network, const std::function<void(NetworkPe&)>& body) {
  const SharedHeaps heaps;
  BootstrapArea area(Network::n_pes);
  ForkedPes pes(Network::n_pes, [&](int pe) {
    // Otherwise a kernel that waits may keep another one from being loaded.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    ThreadBootstrap bootstrap(area, pe);
    NetworkPe me(network, heaps, bootstrap);
    body(me);
    me.stop();
    me.barrier(); // memory must not be unmapped while another PE may use it
  });
  std::string problems;
  for (const std::string& end : pes.ends())
    problems += end.empty() ? "" : end + "\n";
  return problems;
}

const std::map<std::string, std::string> emulated_hca = {{"MLX5_DEVICE", "emulated"},
                                                         {"EMULATED_HCA_OVER", "shm"}};

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

/// What it takes to build a WQE, whatever the HCA does with it: the queues have room for all, so
/// that none waits for the HCA, and the quiet is behind the time.
TEST(KernelsOverIbgda, WqesPerSecond) {
  if (count_gpus() == 0)
    GTEST_SKIP() << "no GPU";
  auto options = emulated_hca;
  options["QP_DEPTH"] = "16384";
  for (const char* const queues : {"1", "8"}) {
    options["IBGDA_NUM_RC_PER_PE"] = queues;
    std::printf("queues: %s\n", queues);
    EXPECT_EQ(run_network_pes({"ibgda_emulated", make_ibgda_transport, "ibgda", options},
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
                    Network{"ibgda_emulated", make_ibgda_transport, "ibgda", emulated_hca},
                    Network{"ibgda_emulated_any_order",
                            make_ibgda_transport,
                            "ibgda",
                            {{"MLX5_DEVICE", "emulated"},
                             {"EMULATED_HCA_OVER", "shm"},
                             {"EMULATED_HCA_PLACEMENT", "any"}}}),
    [](const auto& tested) { return tested.param.name; });

} // namespace
} // namespace shmemctl::test
