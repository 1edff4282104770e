// The parts of `bringup` that communicate with the job's PEs.
#include "src/instruments/bringup/bringup.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/units.h"
#include "src/instruments/bringup/gpu_pairs.h"
#include "src/runtime/fault.h"
#include "src/runtime/transport_choice.h"

namespace shmemctl {

namespace {

constexpr const char* check_phase = "pair-check";

/// Symmetric memory that must be freed by free().
class SymmetricMemory {
public:
  SymmetricMemory(Runtime& runtime, std::size_t size_bytes)
      : runtime_(runtime), address_(runtime.allocate(size_bytes, 4096)) {
    if (!address_)
      throw Error(ExitCode::unavailable, "symmetric heap",
                  "allocate " + std::to_string(size_bytes) + " bytes",
                  "too small for the pair check",
                  "set SHMEMCTL_SYMMETRIC_SIZE to " +
                      format_size_bytes(((size_bytes >> 20) + 1) << 20) + " or more");
  }
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;
  std::byte* get() const { return static_cast<std::byte*>(address_); }
  /// Collective; not done by a destructor, because after an Error the others do not take part.
  void free() { runtime_.free(address_); }

private:
  Runtime& runtime_;
  void* address_;
};

/// An Rma that uses only one transport, for the PEs that the transport reaches from here.
std::unique_ptr<Rma> rma_over(Runtime& runtime, const TransportReach& reach) {
  std::vector<Transport*> path_to(static_cast<std::size_t>(runtime.n_pes()), nullptr);
  for (const TransportEntry& reachable : runtime.transports())
    if (reach.name == reachable.transport->name())
      for (int target = 0; target < runtime.n_pes(); ++target)
        if (reach.from(runtime.pe(), target) != 0)
          path_to[static_cast<std::size_t>(target)] = reachable.transport.get();
  auto rma = std::make_unique<Rma>(runtime.pe(), runtime.n_pes(), std::move(path_to),
                                   runtime.failure_detector(), runtime.rma().timeout_s(), true);
  for (int index = 0; index < limits::max_regions; ++index)
    if (const RegionView& view = runtime.rma().region(index); view.base)
      rma->set_region(view);
  return rma;
}

} // namespace

std::vector<PhaseRow> gather_phases(Runtime& runtime) {
  return merge_phases(runtime.gather_text(phases_message(runtime.phase_times())));
}

GpuSummary gather_gpus(Runtime& runtime) {
  if (PeGpu* gpu = runtime.gpu()) {
    const std::vector<std::string> messages =
        runtime.gather_text_on_first(gpu_info_message(gpu->info(), gpu->paths_by_pe()));
    return runtime.pe() == 0 ? merge_gpu_infos(messages, runtime.placement().hosts) : GpuSummary();
  }
  GpuSummary none;
  const std::vector<Gpu>& gpus = runtime.node().gpus;
  if (std::any_of(gpus.begin(), gpus.end(),
                  [](const Gpu& gpu) { return gpu.vendor == "nvidia"; })) {
    CheckRow row;
    row.id = gpu_devices_row;
    row.title = "which GPU each PE has";
    row.group = "gpu";
    row.status = "skipped";
    row.reason = "the job uses no GPUs: " + runtime.no_gpu_reason();
    none.rows.push_back(std::move(row));
  }
  return none;
}

std::vector<TransportReach> gather_reach(Runtime& runtime) {
  return merge_reach(runtime.gather_text(reach_message(runtime.transports())));
}

BringupVerdict check_all_pairs(Runtime& runtime, const Options& options,
                               std::vector<TransportReach> transports,
                               const CheckProgress& progress) {
  BringupVerdict verdict;
  verdict.n_pes = runtime.n_pes();
  verdict.transports = std::move(transports);
  verdict.unreachable = unreachable_pairs(verdict.transports, verdict.n_pes);
  verdict.advice = runtime.remote_choice().advice;
  runtime.failure_detector().phase(check_phase);
  const CheckBuffer layout(verdict.n_pes, CheckBuffer::default_sizes());
  SymmetricMemory buffer(runtime, layout.size_bytes());
  const bool all_reached = verdict.unreachable.empty();
  const auto sync = [&runtime, all_reached] {
    if (all_reached)
      runtime.teams().sync(team_world);
    else // a sync would need the missing paths
      runtime.gather_text("");
  };
  std::vector<PairFailure> failures;
  verdict.time_s.resize(verdict.transports.size());
  for (std::size_t i = 0; i < verdict.transports.size(); ++i) {
    const TransportReach& reach = verdict.transports[i];
    if (!reach.reaches_anything())
      continue;
    const std::unique_ptr<Rma> rma = rma_over(runtime, reach);
    const auto announce = [&](int round) {
      progress(reach.name, round, verdict.n_pes);
      if (round == verdict.n_pes / 2)
        inject_fault(options, runtime.pe(), check_phase);
    };
    PairWorld world{*rma,
                    static_cast<int>(i),
                    buffer.get(),
                    layout,
                    [&reach](int source, int target) { return reach.from(source, target); },
                    sync,
                    announce};
    world.time_s = &verdict.time_s[i];
    const std::vector<PairFailure> found = check_pairs(world);
    failures.insert(failures.end(), found.begin(), found.end());
  }
  if (PeGpu* gpu = runtime.gpu()) {
    const auto gather = [&runtime](const std::string& text) { return runtime.gather_text(text); };
    const TransportReach reach =
        merge_reach(gather(kernel_reach_message(gpu->paths_by_pe(), gpu->info().heap_kind)))
            .front();
    progress(kernels_name, 0, 1);
    const KernelFindings found =
        check_pairs_by_kernels(*gpu, reach, static_cast<int>(verdict.transports.size()), gather);
    verdict.kernels_problem = found.problem;
    if (found.problem.empty())
      verdict.transports.push_back(reach);
    failures.insert(failures.end(), found.failures.begin(), found.failures.end());
  }
  verdict.failures = merge_failures(runtime.gather_text(failures_message(failures)));
  buffer.free();
  return verdict;
}

} // namespace shmemctl
