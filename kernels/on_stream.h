// Operations on streams: enqueued by the host, executed by the device in stream order. All return
// at once and may be captured in a CUDA graph; a wait that times out fills the job's report, which
// PeGpu::wait() and check() turn into an Error. All throw Error if CUDA refuses a launch, or in a
// build without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/abi/device_job.h"
#include "src/abi/op_types.h"

namespace shmemctl::on_stream {

/// A CUstream of the device of the job's heap.
using Stream = void*;

/// From this size on, a put with a signal to mapped GPU memory is a copy by a copy engine and a
/// kernel that sets the signal; below, one kernel does both.
inline constexpr std::size_t put_signal_copy_bytes = std::size_t{128} << 10;

/// What the host needs to know about the job. The constructor reads device memory, which a graph
/// cannot capture. Construct a new object when the DeviceJob changes (when the heap grows or teams
/// change).
class Job {
public:
  explicit Job(const DeviceJob& device);
  /// From known values: deltas by PE, as in DeviceJob; whether the heap is host memory (HEAP=host).
  Job(const DeviceJob& device, std::vector<std::int64_t> heap_delta_bytes, bool heap_on_host)
      : device_(device), heap_delta_bytes_(std::move(heap_delta_bytes)),
        heap_on_host_(heap_on_host) {}

  const DeviceJob& device() const { return device_; }
  /// The mapped address of `local`, a symmetric address of this PE, on that PE; nullptr if it is
  /// not mapped here.
  std::byte* address(const void* local, int pe) const;
  /// Whether puts and gets to or from `there`, a result of address(), use copy engines: a copy
  /// starts faster than a kernel at any size (2.1 and 3.1 us for 8 bytes, H200). Transfers of a
  /// heap in host memory never do: the host would block until the copy is done, and
  /// thus until everything is done that the stream waits for before it; and the driver does not
  /// copy a range that spans two growth steps of the heap.
  bool by_copy_engine(const std::byte* there) const { return there != nullptr && !heap_on_host_; }

private:
  DeviceJob device_;
  std::vector<std::int64_t> heap_delta_bytes_;
  bool heap_on_host_ = false;
};

/// Complete at the target after quiet(); if the PE is mapped, when the stream has executed the put.
void put(const Job& job, void* target, const void* source, std::size_t size_bytes, int pe,
         Stream stream);
/// `target` holds the data for later work of the stream.
void get(const Job& job, void* target, const void* source, std::size_t size_bytes, int pe,
         Stream stream);
/// The payload is visible before the signal is.
void put_signal(const Job& job, void* target, const void* source, std::size_t size_bytes,
                std::uint64_t* signal, std::uint64_t value, device::SignalOp op, int pe,
                Stream stream);
/// Ordered after the stream's earlier operations on mapped PEs.
void signal(const Job& job, std::uint64_t* signal, std::uint64_t value, device::SignalOp op, int pe,
            Stream stream);
/// Later work of the stream waits until the comparison of this PE's word holds, or until
/// job.timeout_ns has passed; then the timeout is reported, and the stream continues.
/// @param peer PE that is expected to write the word; -1 if any
void wait_until(const Job& job, const std::uint64_t* word, device::Compare compare,
                std::uint64_t value, int peer, Stream stream);
/// Completes all puts of the stream, and of earlier kernels of this PE. Enqueues nothing if all PEs
/// are mapped: then the stream's order completes them.
void quiet(const Job& job, Stream stream);
/// As barrier() in kernels: the stream's earlier operations are visible to all members after it.
void barrier(const Job& job, int team, Stream stream);
/// As sync() in kernels: says nothing about network operations.
void sync(const Job& job, int team, Stream stream);

// Collectives, as in kernels (docs/explanation/device_collectives.md). Those of a team must not
// overlap: enqueue them on one stream, or order them by events.

void broadcast(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
               int root, Stream stream);
void fcollect(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
              Stream stream);
void alltoall(const Job& job, int team, void* dest, const void* source, std::size_t size_bytes,
              Stream stream);

/// Sizes and offsets of alltoallv(), by member: the arrays are this PE's own, in memory that its
/// device reads, and must not change until the stream has passed the call.
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
