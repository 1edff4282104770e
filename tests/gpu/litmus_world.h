// A PE that runs litmus programs (litmus.h) in a whole job with its runtime.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "src/runtime/gpu/gpu.h"
#include "src/runtime/runtime.h"
#include "tests/gpu/litmus.h"
#include "tests/support/fork_job.h"

namespace shmemctl::test {

inline void require_call(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    throw Error(ExitCode::finding, what, "call", cudaGetErrorString(result), "-");
}

inline const char* name_of(LitmusProgram program) {
  switch (program) {
  case LitmusProgram::put_signal:
    return "put_signal";
  case LitmusProgram::put_signal_add:
    return "put_signal_add";
  case LitmusProgram::put_signal_nbi:
    return "put_signal_nbi";
  case LitmusProgram::beside:
    return "put_signal_beside";
  case LitmusProgram::fence:
    return "put_fence_signal";
  case LitmusProgram::quiet:
    return "put_quiet_value";
  case LitmusProgram::barrier:
    return "put_barrier";
  case LitmusProgram::poll:
    return "get_poll";
  case LitmusProgram::grid_barrier:
    return "put_grid_barrier";
  case LitmusProgram::grid_sync:
    return "grid_sync";
  case LitmusProgram::gather:
    return "fcollect";
  case LitmusProgram::gather_of_grid:
    return "fcollect_grid";
  case LitmusProgram::reduce:
    return "reduce";
  case LitmusProgram::reduce_of_grid:
    return "reduce_grid";
  case LitmusProgram::relay:
    return "put_quiet_relay";
  }
  return "?";
}
inline std::string text_of(const Litmus& litmus) {
  const char* who = litmus.who == Who::thread ? "thread"
                    : litmus.who == Who::warp ? "warp"
                                              : "block";
  return std::string(name_of(litmus.program)) + " by " + std::to_string(litmus.blocks) + " x " +
         who + " of " + std::to_string(litmus.size_bytes) + " B";
}

/// What a litmus has come to, on all PEs together.
struct LitmusResult {
  std::uint64_t wrong = 0, checked = 0, gave_up = 0;
  double seconds = 0;
  bool holds() const { return wrong == 0 && gave_up == 0; }
  std::string text() const {
    return std::to_string(checked) + " messages, " + std::to_string(wrong) + " words late, " +
           std::to_string(gave_up) + " blocks gave up, " + std::to_string(seconds) + " s";
  }
};

/// One PE of two, or of three (relay).
class LitmusPe {
public:
  /// @param wait_s after which a wait of a kernel gives up
  LitmusPe(Runtime& runtime, double wait_s) : runtime_(runtime), gpu_(*runtime.gpu()) {
    base_ = static_cast<std::byte*>(gpu_.allocate(LitmusPlaces::bytes));
    if (!base_)
      throw Error(ExitCode::finding, "the litmus' memory", "allocate", "the heap is full", "-");
    job_ = gpu_.job();
    job_.timeout_ns = static_cast<std::uint64_t>(wait_s * 1e9);
    // The world in every slot: each block of a kernel has a team of its own.
    const std::vector<TeamState> teams(limits::max_teams, {1, job_.pe, job_.n_pes, 0, 1, 0, 0});
    require_call(cudaMalloc(&teams_, teams.size() * sizeof(TeamState)), "cudaMalloc");
    require_call(
        cudaMemcpy(teams_, teams.data(), teams.size() * sizeof(TeamState), cudaMemcpyHostToDevice),
        "copy of the teams");
    job_.teams = static_cast<const TeamState*>(teams_);
    require_call(cudaMalloc(&stop_, sizeof(unsigned)), "cudaMalloc");
    require_call(cudaStreamCreateWithFlags(&litmus_stream_, cudaStreamNonBlocking), "stream");
    require_call(cudaStreamCreateWithFlags(&load_stream_, cudaStreamNonBlocking), "stream");
  }
  ~LitmusPe() {
    cudaStreamDestroy(litmus_stream_);
    cudaStreamDestroy(load_stream_);
    cudaFree(teams_);
    cudaFree(stop_);
  }
  LitmusPe(const LitmusPe&) = delete;
  LitmusPe& operator=(const LitmusPe&) = delete;

  /// Collective. @param load_blocks that fill the link meanwhile
  LitmusResult run(const LitmusVariant& variant, const Litmus& litmus, int load_blocks) {
    clear();
    const auto begin = std::chrono::steady_clock::now();
    if (load_blocks > 0)
      launch_load(load_stream_, job_, base_, (job_.pe + 1) % job_.n_pes, load_blocks,
                  static_cast<const unsigned*>(stop_));
    variant.launch(litmus_stream_, job_, base_, litmus);
    require_call(cudaMemsetAsync(stop_, 1, sizeof(unsigned), litmus_stream_), "the load's end");
    finish(litmus_stream_);
    finish(load_stream_);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    LitmusCount mine{};
    gpu_.copy(&mine, base_ + LitmusPlaces::count, sizeof mine);
    job_.report->state = WaitReport::none;
    return sum(mine, took.count());
  }
  int pe() const { return job_.pe; }

private:
  void clear() {
    const std::size_t cells_bytes = sizeof(DeviceTeamFlags) * limits::max_teams;
    gpu_.fill(job_.cells, 0, cells_bytes);
    gpu_.fill(base_, 0, LitmusPlaces::load);
    require_call(cudaMemset(stop_, 0, sizeof(unsigned)), "the load's begin");
    require_call(cudaDeviceSynchronize(), "what is before the kernel");
    runtime_.collectives().barrier(team_world);
  }
  /// Yields the processor meanwhile: proxies need it.
  static void finish(cudaStream_t stream) {
    cudaError_t state = cudaSuccess;
    while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    require_call(state, "the litmus' kernel");
  }
  LitmusResult sum(const LitmusCount& mine, double seconds) {
    char line[128];
    std::snprintf(line, sizeof line, "%llu %llu %llu", mine.wrong, mine.checked, mine.gave_up);
    LitmusResult all;
    all.seconds = seconds;
    for (const std::string& each : runtime_.gather_text(line)) {
      LitmusCount one{};
      std::sscanf(each.c_str(), "%llu %llu %llu", &one.wrong, &one.checked, &one.gave_up);
      all.wrong += one.wrong;
      all.checked += one.checked;
      all.gave_up += one.gave_up;
    }
    return all;
  }

  Runtime& runtime_;
  PeGpu& gpu_;
  std::byte* base_ = nullptr;
  DeviceJob job_{};
  void *teams_ = nullptr, *stop_ = nullptr;
  cudaStream_t litmus_stream_ = nullptr, load_stream_ = nullptr;
};

/// A job of PEs with a GPU each.
inline ForkJob litmus_job(const Environment& more, std::function<std::string(Runtime&)> body,
                          int n_pes = 2) {
  ForkJob job;
  job.n_pes = n_pes;
  job.gpu = GpuUse::required;
  job.environment = {{"SHMEMCTL_SYMMETRIC_SIZE", "64M"}, {"SHMEMCTL_TIMEOUT", "60"}};
  for (const auto& [name, value] : more)
    job.environment[name] = value;
  job.body = std::move(body);
  return job;
}

/// The networks that kernels have on one machine.
struct NetworkPath {
  const char* name;
  Environment environment;
  /// Messages that take about a second; messages_of() has more where wanted.
  std::uint64_t messages;
};
inline std::vector<NetworkPath> network_paths() {
  const auto host = [](const char* path, const char* transport) {
    return Environment{{"SHMEMCTL_HEAP", "host"},
                       {"SHMEMCTL_DEVICE_PATH", path},
                       {"SHMEMCTL_TRANSPORT", transport},
                       {"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"},
                       {"SHMEMCTL_MLX5_DEVICE", "emulated"}};
  };
  Environment staged = host("proxy", "shm");
  staged["SHMEMCTL_HEAP"] = "vmm";
  // An HCA that keeps no more order than it must: signals are atomics, and fences wait.
  Environment any_order = host("ibgda", "shm,ibgda");
  any_order["SHMEMCTL_EMULATED_HCA_PLACEMENT"] = "any";
  any_order["SHMEMCTL_IBGDA_NUM_RC_PER_PE"] = "1"; // with more, a fence is a quiet of all of them
  Environment queues_staged = host("ibgda", "shm,ibgda"); // what their HCA carries out is staged
  queues_staged["SHMEMCTL_HEAP"] = "vmm";
  return {{"proxy_shm", host("proxy", "shm"), 1'000'000},
          {"proxy_shm_staged", staged, 20'000},
          {"proxy_libfabric_tcp", host("proxy", "libfabric"), 50'000},
          {"ibgda_emulated", host("ibgda", "shm,ibgda"), 50'000},
          {"ibgda_emulated_any_order", any_order, 50'000},
          {"ibgda_emulated_staged", queues_staged, 20'000}};
}

} // namespace shmemctl::test
