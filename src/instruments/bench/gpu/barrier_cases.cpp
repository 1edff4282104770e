// Barrier and sync of kernels.
#include "kernels/bench/barrier.h"
#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/gpu/gpu_case.h"

namespace shmemctl::bench {

namespace {

template <BarrierKernel kernel>
class GpuBarrier final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int n_pes) const override {
    return static_cast<std::size_t>(n_pes + 1) * sizeof(std::uint64_t);
  }
  bool measures() const override { return true; }
  std::uint64_t bytes_per_iteration() const override { return 0; }

  /// Makes more calls. Before each call a PE writes the call's number to all PEs; after the call it
  /// checks that it has the numbers of all.
  std::optional<WrongByte> verify(std::uint64_t) override {
    constexpr std::uint64_t calls = 200;
    if (by_stream())
      return watch_stream();
    run("watching calls", point().launch.scope, 1, point().launch.threads,
        [&](const KernelLaunch& how) { return launch_barrier(how, arguments(0, calls, true)); });
    if (control().wrong_at == UINT64_MAX)
      return std::nullopt;
    return WrongByte{pe(), control().wrong_at, control().expected, control().found,
                     "call of PE " + std::to_string(control().wrong_at / sizeof(std::uint64_t)) +
                         " when this PE left it"};
  }

protected:
  void set_up() override {}
  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    return launch_barrier(how, arguments(first, count, false));
  }

  void enqueue(const on_stream::Job& job, std::uint64_t, void* stream) override {
    synchronise(job, stream);
  }
  void enqueue_end(const on_stream::Job&, void*) override {}

private:
  static void synchronise(const on_stream::Job& job, void* stream) {
    if (kernel == BarrierKernel::sync)
      on_stream::sync(job, team_world, stream);
    else
      on_stream::barrier(job, team_world, stream);
  }
  /// verify() with streams: each PE puts the call's number to every PE, then all synchronise.
  std::optional<WrongByte> watch_stream() {
    constexpr std::uint64_t calls = 20;
    const on_stream::Job job(gpu().job());
    const auto n = static_cast<std::size_t>(n_pes());
    std::byte* const own = memory() + static_cast<std::size_t>(pe()) * sizeof(std::uint64_t);
    std::byte* const number_here = memory() + n * sizeof(std::uint64_t);
    std::optional<WrongByte> wrong;
    for (std::uint64_t call = 1; call <= calls; ++call) {
      gpu().copy(number_here, &call, sizeof call);
      for (int to = 0; to < n_pes(); ++to)
        on_stream::put(job, own, number_here, sizeof call, to, gpu().stream());
      if (kernel == BarrierKernel::sync) // a sync does not complete puts over a network
        on_stream::quiet(job, gpu().stream());
      synchronise(job, gpu().stream());
      gpu().wait(gpu().stream(), "watching calls");
      std::vector<std::uint64_t> seen(n);
      gpu().copy(seen.data(), memory(), n * sizeof call);
      for (std::size_t from = 0; from < n && !wrong; ++from)
        if (seen[from] < call)
          wrong = WrongByte{pe(), from * sizeof call, call, seen[from],
                            "call of PE " + std::to_string(from) + " when this PE left it"};
    }
    return wrong;
  }

  BarrierArguments arguments(std::uint64_t first, std::uint64_t count, bool checks) const {
    return {kernel, first, count, reinterpret_cast<std::uint64_t*>(memory()), checks};
  }
};

} // namespace

SHMEMCTL_CASE(barrier_by_gpu, GpuBarrier<BarrierKernel::barrier>);
SHMEMCTL_CASE(sync_by_gpu, GpuBarrier<BarrierKernel::sync>);

} // namespace shmemctl::bench
