// The base of kernel and stream cases: memory, launches, and the GPU's timer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/kernel_launch.h"
#include "kernels/bench/pattern.h"
#include "kernels/bench/stream_timer.h"
#include "kernels/on_stream.h"
#include "src/instruments/bench/case.h"
#include "src/instruments/bench/cases/host_case.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

/// With a kernel: iterate() launches one that does all of its iterations, and waits for it. The
/// time is measured within the kernel: from when all PEs have met in it until all operations are
/// complete.
/// With a stream: iterate() enqueues the operations after a barrier of all PEs' streams, and the
/// time is that between two events. A graph contains `variants` operations, because an operation
/// depends only on its number modulo `variants`.
class GpuCase : public Case {
public:
  explicit GpuCase(const Point& point) : point_(point) {}

  std::size_t bytes_needed(const Runtime& runtime, const Point& point) const final;
  void prepare(Arena& arena) final;
  void iterate(std::uint64_t first, std::uint64_t count) final;
  std::optional<double> last_duration_ns() const final { return duration_ns_; }
  std::optional<TimerQuality> timer() const final { return timer_; }
  std::string cannot_run(Runtime& runtime) const override;
  std::uint64_t batch_multiple() const final { return point_.launch.graph ? variants : 1; }

  /// Size in bytes of the case's own memory in a job of `n_pes` PEs.
  virtual std::size_t bytes_for(int n_pes) const = 0;

protected:
  /// Enqueues operation `number` on the stream.
  virtual void enqueue(const on_stream::Job& job, std::uint64_t number, void* stream) {
    static_cast<void>(job), static_cast<void>(number), static_cast<void>(stream);
  }
  /// Enqueues what completes all earlier operations.
  virtual void enqueue_end(const on_stream::Job& job, void* stream) {
    on_stream::quiet(job, stream);
  }
  bool by_stream() const { return point_.launch.initiator == Initiator::stream; }

  /// Fills buffers. The accessors below are valid from here on.
  virtual void set_up() = 0;
  /// Launches the kernel; returns "" or why that failed.
  virtual std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) = 0;
  /// Called after each launch of iterate(). control() returns the results of that launch.
  virtual void launched() {}
  /// How many blocks can be resident at once on this PE's GPU; 0 if unknown. Only used for grids.
  virtual int max_resident_blocks(int device) const {
    static_cast<void>(device);
    return 0;
  }
  /// Whether the kernels load from and store to the memory of peers without the API.
  virtual bool needs_mapping() const { return false; }

  const Point& point() const { return point_; }
  int pe() const { return pe_; }
  int n_pes() const { return n_pes_; }
  std::byte* memory() const { return memory_; } ///< symmetric memory of the GPU
  std::uint64_t seed() const { return seed_; }
  PeGpu& gpu() const { return *gpu_; }
  Routes routes() const { return routes_of(point_, pe_, n_pes_); }
  bool is_mapped(int pe) const;

  /// Launches a kernel that is not timed and waits for it.
  void run(const char* step, CallScope scope, int ctas, int threads,
           const std::function<std::string(const KernelLaunch&)>& launcher);
  void fill(std::byte* area, std::size_t size_bytes, int pe);
  /// Verifies an area of slots on the GPU; returns the first byte that the operations cannot have
  /// left there.
  std::optional<WrongByte> check(const std::byte* area, const PatternSlots& slots,
                                 const std::string& what);
  /// Copies that part of memory() to the host.
  std::vector<std::byte> fetched(std::size_t offset_bytes, std::size_t size_bytes) const;
  /// The results of the last launch.
  const KernelControl& control() const { return seen_; }

private:
  KernelControl* device_control() const { return reinterpret_cast<KernelControl*>(control_); }
  void launch_and_wait(const char* step, CallScope scope, int ctas, int threads,
                       const std::function<std::string(const KernelLaunch&)>& launcher);
  void iterate_on_stream(std::uint64_t first, std::uint64_t count);
  void measure_timer();

  Point point_;
  int pe_ = 0, n_pes_ = 1;
  std::byte *control_ = nullptr, *memory_ = nullptr;
  std::uint64_t seed_ = 0;
  PeGpu* gpu_ = nullptr;
  KernelControl seen_{};
  std::optional<double> duration_ns_;
  std::optional<TimerQuality> timer_;
  std::optional<on_stream::Job> stream_job_;
  std::optional<StreamTimer> stream_timer_;
};

/// Why the launch's blocks cannot all run at once; "" if they can. PEs that share a GPU get equal
/// shares of its blocks, because their kernels may wait for each other.
/// @param max_resident blocks that an idle GPU holds at once; 0 if unknown
std::string too_many_blocks(const GpuInfo& info, const Launch& launch, int max_resident);
/// Why kernels cannot load from and store to that PE; "" if they can.
std::string unmapped(const std::vector<KernelPath>& routes, int pe);

} // namespace shmemctl::bench
