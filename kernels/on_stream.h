// Operations on streams: the host asks, the device does them in the stream's order. All return at
// once and may be captured in a CUDA graph; a wait that gives up fills the job's report, which
// PeGpu::wait() and check() make an Error of. All throw Error if CUDA refuses a launch, or if this
// was built without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/device_job.h"
#include "kernels/device_operations.h"

namespace shmemctl::on_stream {

/// A CUstream of the device that the job's heap is on.
using Stream = void*;

/// From that size on, mapped memory of GPUs is copied by the copy engines, not by multiprocessors.
inline constexpr std::size_t copy_engine_bytes = std::size_t{128} << 10;

/// What the host has to know of the job. Reads the device's memory when it is made, which no graph
/// can capture; made anew when the job is (DeviceJob: a heap that grows, teams).
class Job {
public:
  explicit Job(const DeviceJob& device);
  /// With what is known: by PE, as in DeviceJob; whether the heap is memory of the host
  /// (HEAP=host).
  Job(const DeviceJob& device, std::vector<std::int64_t> heap_delta_bytes, bool heap_on_host)
      : device_(device), heap_delta_bytes_(std::move(heap_delta_bytes)),
        heap_on_host_(heap_on_host) {}

  const DeviceJob& device() const { return device_; }
  /// Where `local`, a symmetric address of mine, is on that PE; nullptr if it is not mapped here.
  std::byte* address(const void* local, int pe) const;
  /// Whether transfers of that size to or from `there`, what address() says, go by copy engines.
  /// Those of a heap of host memory never do: the host would wait until such a copy is done, and
  /// with it for all that the stream has to wait for first; and the driver copies no range that
  /// spans two steps of the heap's growth.
  bool by_copy_engine(const std::byte* there, std::size_t size_bytes) const {
    return there != nullptr && size_bytes >= copy_engine_bytes && !heap_on_host_;
  }

private:
  DeviceJob device_;
  std::vector<std::int64_t> heap_delta_bytes_;
  bool heap_on_host_ = false;
};

/// Complete at the target behind quiet(), or when the stream has got there, if the PE is mapped.
void put(const Job& job, void* target, const void* source, std::size_t size_bytes, int pe,
         Stream stream);
/// `target` holds the bytes for what comes behind in the stream.
void get(const Job& job, void* target, const void* source, std::size_t size_bytes, int pe,
         Stream stream);
/// The payload is visible before the signal is.
void put_signal(const Job& job, void* target, const void* source, std::size_t size_bytes,
                std::uint64_t* signal, std::uint64_t value, device::SignalOp op, int pe,
                Stream stream);
/// Behind all that the stream has done before, towards PEs that are mapped.
void signal(const Job& job, std::uint64_t* signal, std::uint64_t value, device::SignalOp op, int pe,
            Stream stream);
/// What follows in the stream waits until this PE's word holds, or until job.timeout_ns have
/// passed: then the report says so, and the stream goes on.
/// @param peer who is expected to write it; -1 if anybody
void wait_until(const Job& job, const std::uint64_t* word, device::Compare compare,
                std::uint64_t value, int peer, Stream stream);
/// All that the stream, and any kernel of this PE before, has put is complete.
void quiet(const Job& job, Stream stream);
/// As barrier() of kernels: what the stream has done before is visible to all members behind it.
void barrier(const Job& job, int team, Stream stream);
/// As sync() of kernels: says nothing of what went by the network.
void sync(const Job& job, int team, Stream stream);

// Collectives: as those of kernels (docs/explanation/device_collectives.md); one of a team at a
// time, so on one stream, or ordered by events.

void broadcast(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
               int root, Stream stream);
void fcollect(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
              Stream stream);
void alltoall(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
              Stream stream);

/// What alltoallv() sends to whom, by member: the arrays are this PE's own, in memory that its
/// device reads, and stay as they are until the stream has got behind the call.
struct ExchangeLists {
  const std::uint64_t* size_bytes;
  const std::uint64_t* source_offset_bytes;
  const std::uint64_t* dest_offset_bytes;
};
void alltoallv(const Job& job, int team, void* dest, const void* source, const ExchangeLists& lists,
               Stream stream);

enum class NumberType : std::uint8_t {
  int32,
  int64,
  float32,
  float64,
  bf16,
  fp16,
  int8,
  int16,
  uint8,
  uint16,
  uint32,
  uint64
};
void reduce(const Job& job, int team, void* dest, const void* source, std::size_t count,
            NumberType type, device::ReduceOp op, Stream stream);
void reducescatter(const Job& job, int team, void* dest, const void* source, std::size_t count,
                   NumberType type, device::ReduceOp op, Stream stream);

} // namespace shmemctl::on_stream
