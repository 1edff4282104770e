#include "src/instruments/bench/gpu/gpu_case.h"

#include <algorithm>

#include "kernels/bench/check.h"
#include "src/instruments/bench/statistics.h"

namespace shmemctl::bench {

namespace {

/// The control words precede the case's memory, which therefore begins at a page boundary of the
/// heap.
constexpr std::size_t control_bytes = 4096;
static_assert(sizeof(KernelControl) <= control_bytes);

/// Launch size of the kernels that fill and verify buffers: enough to keep any GPU busy.
constexpr int helper_ctas = 64, helper_threads = 256;

KernelScope kernel_scope(CallScope scope) {
  switch (scope) {
  case CallScope::thread:
    return KernelScope::thread;
  case CallScope::warp:
    return KernelScope::warp;
  case CallScope::block:
    return KernelScope::block;
  }
  return KernelScope::block;
}

} // namespace

std::string unmapped(const std::vector<KernelPath>& routes, int pe) {
  const KernelPath& route = routes.at(static_cast<std::size_t>(pe));
  if (route.path == DevicePath::load_store)
    return "";
  return "kernels cannot load from and store to PE " + std::to_string(pe) + ": " + route.reason;
}

std::string too_many_blocks(const GpuInfo& info, const Launch& launch, int max_resident) {
  const int sharers = std::max(info.pes_on_device, 1);
  const int of_this_pe = std::max(max_resident / sharers, 1);
  if (max_resident <= 0 || launch.ctas <= of_this_pe)
    return "";
  const std::string shared =
      sharers > 1 ? ", which " + std::to_string(sharers) + " PEs share" : std::string();
  return std::to_string(launch.ctas) + " blocks of " + std::to_string(launch.threads) +
         " threads do not run at once on " + info.name + shared + ": at most " +
         std::to_string(of_this_pe);
}

std::size_t GpuCase::bytes_needed(const Runtime& runtime, const Point&) const {
  return control_bytes + bytes_for(runtime.n_pes());
}

std::string GpuCase::cannot_run(Runtime& runtime) const {
  PeGpu* const gpu = runtime.gpu();
  if (!gpu)
    return "it has no GPU";
  if (point_.launch.ctas > 1)
    if (std::string reason =
            too_many_blocks(gpu->info(), point_.launch, max_resident_blocks(gpu->info().device));
        !reason.empty())
      return reason;
  const std::vector<KernelPath>& routes = gpu->paths_by_pe();
  for (int pe = 0; pe < runtime.n_pes(); ++pe) {
    const KernelPath& route = routes.at(static_cast<std::size_t>(pe));
    if (route.path == DevicePath::none)
      return "kernels do not reach PE " + std::to_string(pe) + ": " + route.reason;
  }
  if (needs_mapping())
    for (const int pe : routes_of(point_, runtime.pe(), runtime.n_pes()).to)
      if (std::string reason = unmapped(routes, pe); !reason.empty())
        return reason;
  return "";
}

bool GpuCase::is_mapped(int pe) const {
  return unmapped(gpu_->paths_by_pe(), pe).empty();
}

void GpuCase::prepare(Arena& arena) {
  pe_ = arena.runtime.pe();
  n_pes_ = arena.runtime.n_pes();
  control_ = arena.memory;
  memory_ = arena.memory + control_bytes;
  seed_ = arena.seed;
  gpu_ = arena.runtime.gpu();
  if (!by_stream()) {
    measure_timer();
    return set_up();
  }
  // CUDA events have a resolution of half a microsecond, and an interval between two includes about
  // one more.
  timer_ = TimerQuality{500, 1000};
  set_up();
  stream_job_.emplace(gpu_->job());
  stream_timer_.emplace(gpu_->info().device);
  if (point_.launch.graph)
    stream_timer_->capture(gpu_->stream(), [this] {
      for (std::uint64_t number = 0; number < variants; ++number)
        enqueue(*stream_job_, number, gpu_->stream());
    });
}

void GpuCase::iterate_on_stream(std::uint64_t first, std::uint64_t count) {
  void* const stream = gpu_->stream();
  on_stream::barrier(*stream_job_, team_world, stream);
  stream_timer_->begin(stream);
  for (std::uint64_t number = first; number < first + count;) {
    const bool fits = number % variants == 0 && first + count - number >= variants;
    if (fits && stream_timer_->has_graph()) {
      stream_timer_->launch_graph(stream);
      number += variants;
    } else {
      enqueue(*stream_job_, number++, stream);
    }
  }
  enqueue_end(*stream_job_, stream);
  stream_timer_->end(stream);
  gpu_->wait(stream, "measured stream");
  gpu_->check();
  duration_ns_ = stream_timer_->elapsed_ns();
}

void GpuCase::launch_and_wait(const char* step, CallScope scope, int ctas, int threads,
                              const std::function<std::string(const KernelLaunch&)>& launcher) {
  const GpuInfo& info = gpu_->info();
  if (!info.no_kernels.empty())
    throw Error(ExitCode::unavailable,
                "PE " + std::to_string(pe_) + ", GPU " + std::to_string(info.device),
                "launch a kernel", info.no_kernels, install_driver_for_kernels());
  const DeviceJob job = gpu_->job(); // read anew each time: heaps grow, teams come and go
  const KernelLaunch how{job,  device_control(), gpu_->stream(), info.device, kernel_scope(scope),
                         ctas, threads};
  if (const std::string problem = launcher(how); !problem.empty())
    throw Error(
        ExitCode::unavailable, "PE " + std::to_string(pe_) + ", GPU " + std::to_string(info.device),
        "launch a kernel of " + std::to_string(ctas) + " blocks of " + std::to_string(threads) +
            " threads",
        problem, "pass fewer --ctas or --threads, or run shmemctl doctor to check the driver");
  gpu_->wait(gpu_->stream(), step);
  gpu_->copy(&seen_, control_, sizeof seen_);
  if (seen_.failed == 0)
    return;
  gpu_->check(); // throws an error with more details, if there are any
  throw Error(ExitCode::unavailable,
              "PE " + std::to_string(pe_) + ", GPU " + std::to_string(info.device),
              std::string("complete the ") + step,
              "a put, get, atomic or wait of the kernel did not complete",
              "run shmemctl bringup to check every pair of PEs");
}

void GpuCase::run(const char* step, CallScope scope, int ctas, int threads,
                  const std::function<std::string(const KernelLaunch&)>& launcher) {
  launch_and_wait(step, scope, ctas, threads, launcher);
}

void GpuCase::iterate(std::uint64_t first, std::uint64_t count) {
  if (by_stream())
    return iterate_on_stream(first, count);
  launch_and_wait("measured kernel", point_.launch.scope, std::max(point_.launch.ctas, 1),
                  std::max(point_.launch.threads, 1),
                  [&](const KernelLaunch& how) { return launch(how, first, count); });
  gpu_->check();
  duration_ns_ = static_cast<double>(seen_.end_ns - seen_.begin_ns);
  launched();
}

/// Measures the step of the GPU's clock, and how long a grid takes to meet between two readings.
void GpuCase::measure_timer() {
  constexpr int launches = 5;
  // Beyond this, the time is due to PEs that share a GPU and take turns on it.
  constexpr double max_cost_ns = 5000;
  run("timer kernel", CallScope::thread, 1, 1,
      [](const KernelLaunch& how) { return launch_timer_step(how); });
  TimerQuality quality;
  quality.resolution_ns = static_cast<double>(seen_.step_ns);
  std::vector<double> times;
  for (int i = 0; i < launches; ++i) {
    run("empty kernel", point_.launch.scope, std::max(point_.launch.ctas, 1),
        std::max(point_.launch.threads, 1),
        [](const KernelLaunch& how) { return launch_empty(how); });
    times.push_back(static_cast<double>(seen_.end_ns - seen_.begin_ns));
  }
  quality.cost_ns = std::min(median(std::move(times)), max_cost_ns);
  timer_ = quality;
}

void GpuCase::fill(std::byte* area, std::size_t size_bytes, int pe) {
  run("kernel that fills the buffers", CallScope::thread, helper_ctas, helper_threads,
      [&](const KernelLaunch& how) { return launch_fill(how, area, size_bytes, seed_, pe); });
}

std::optional<WrongByte> GpuCase::check(const std::byte* area, const PatternSlots& slots,
                                        const std::string& what) {
  run("kernel that verifies the data", CallScope::thread, helper_ctas, helper_threads,
      [&](const KernelLaunch& how) { return launch_check(how, area, slots); });
  if (seen_.wrong_at == UINT64_MAX)
    return std::nullopt;
  return WrongByte{pe_, static_cast<std::uint64_t>(area - memory_) + seen_.wrong_at, seen_.expected,
                   seen_.found,
                   "slot " + std::to_string(seen_.wrong_at / slots.slot_bytes) + " of " + what};
}

std::vector<std::byte> GpuCase::fetched(std::size_t offset_bytes, std::size_t size_bytes) const {
  std::vector<std::byte> bytes(size_bytes);
  gpu_->copy(bytes.data(), memory_ + offset_bytes, size_bytes);
  return bytes;
}

} // namespace shmemctl::bench
