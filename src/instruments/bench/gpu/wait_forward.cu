// wait-forward: a message that goes around all PEs.
#include "kernels/bench/pattern.h"
#include "src/instruments/bench/gpu/case_file.h"

namespace shmemctl::bench {

/// Arguments of the kernel. PE 0 puts each message to PE 1 with a signal; every PE forwards it to
/// the next one, until PE 0 has received it.
struct RingArguments {
  std::uint64_t first, count;
  std::byte* memory;
  std::uint64_t slot_offset_bytes, flag_offset_bytes;
  std::uint64_t size_bytes;
};
SHMEMCTL_LAUNCHER(launch_ring, RingArguments)

#ifdef SHMEMCTL_KERNEL_PART

template <class Scope>
__device__ bool pass_on(const DeviceJob& job, const RingArguments& a) {
  const int next = (job.pe + 1) % job.n_pes, before = (job.pe + job.n_pes - 1) % job.n_pes;
  auto* const flag = reinterpret_cast<std::uint64_t*>(a.memory + a.flag_offset_bytes);
  std::byte* const slot = a.memory + a.slot_offset_bytes;
  for (std::uint64_t number = a.first; number < a.first + a.count; ++number) {
    if (job.pe == 0)
      put_signal_nbi<typename Scope::Api>(job, slot,
                                          a.memory + number % variants * variant_step_bytes,
                                          a.size_bytes, flag, number + 1, next);
    bool ok = true;
    if (Scope::rank() == 0)
      ok = wait_masked(job, flag, ~std::uint64_t{0}, number + 1, before);
    if (!Scope::all(ok))
      return false;
    if (job.pe != 0)
      put_signal_nbi<typename Scope::Api>(job, slot, slot, a.size_bytes, flag, number + 1, next);
  }
  return true;
}

template <class Scope>
struct RingBody {
  static __device__ void run(const DeviceJob& job, KernelControl* control, const RingArguments& a) {
    TimedRegion region(job, control);
    if (region.begin())
      region.end(pass_on<Scope>(job, a));
  }
};

SHMEMCTL_LAUNCH_BY_SCOPE(launch_ring, RingBody, RingArguments)

#else

namespace {

class GpuRing final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int) const override { return places().total_bytes(); }
  bool measures() const override { return pe() == 0; }
  /// The traffic of one round over all PEs. A hop is this divided by the number of PEs. Only PE 0
  /// measures.
  std::optional<LeastTraffic> min_traffic(const std::vector<int>& gpu_of_pe) const override {
    const auto size = static_cast<double>(point().size_bytes);
    double between_gpus = 0;
    for (std::size_t at = 0; at < gpu_of_pe.size(); ++at)
      if (gpu_of_pe[at] != gpu_of_pe[(at + 1) % gpu_of_pe.size()])
        between_gpus += size;
    return LeastTraffic{n_pes() * size, n_pes() * size, between_gpus, true};
  }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point().size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }
  int latency_divisor() const override { return n_pes(); }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    const MessageBuffers at = places();
    return verify_message(
        fetched(at.slot_offset_bytes(), at.flag_offset_bytes() + 8 - at.slot_offset_bytes()), at,
        pe(), 0, seed(), iterations, iterations, true);
  }

protected:
  void set_up() override { fill(memory(), source_bytes(point().size_bytes), pe()); }
  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    const MessageBuffers at = places();
    return launch_ring(how, {first, count, memory(), at.slot_offset_bytes(), at.flag_offset_bytes(),
                             point().size_bytes});
  }

private:
  MessageBuffers places() const { return MessageBuffers(point().size_bytes); }
};

} // namespace

SHMEMCTL_CASE(wait_forward_by_gpu, GpuRing);

#endif

} // namespace shmemctl::bench
