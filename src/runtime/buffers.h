// Registered user buffers: memory outside of the symmetric heap, addressed by a descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/job_health.h"
#include "src/runtime/buffers/open_buffer.h"
#include "src/runtime/buffers/registration_table.h"
#include "src/runtime/memory/backing.h"
#include "src/runtime/memory/buffers/buffer_pool.h"
#include "src/runtime/memory/local_peers.h"

namespace shmemctl {

/// While it lives, the owner's remove() waits. Destroy it after everything that uses the address is
/// done (streams synchronised, graphs not launched again) and before the runtime.
class BufferRef {
public:
  /// Throws Error: unavailable if it is not mapped here, with the reason; usage if the
  /// registration has ended.
  BufferRef(std::shared_ptr<const buffers::OpenBuffer> opened, std::uint32_t user);

  /// Its first byte in this process. Memory of a GPU is for kernels and copies of this PE's device;
  /// memory of the host for this process's loads and stores.
  std::byte* address() const { return opened_->address(); }
  std::size_t size_bytes() const { return opened_->size_bytes(); }
  bool is_on_gpu() const { return opened_->is_on_gpu(); }
  bool is_writable() const { return opened_->is_writable(); }

  /// Puts a copy into a stream of this PE's device (a CUstream); it may be capturing a graph. Local
  /// memory is the host's or this PE's GPU's, and stays as it is until the stream has passed.
  /// Throws Error: usage for a range outside, read-only memory or a job without GPUs; unavailable.
  void put_on_stream(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes,
                     void* stream) const;
  void get_on_stream(void* target, std::uint64_t offset_bytes, std::size_t size_bytes,
                     void* stream) const;

private:
  buffers::GpuBufferBackend& engine() const;
  std::shared_ptr<const buffers::OpenBuffer> opened_;
  std::unique_ptr<buffers::OperationGuard> lease_; ///< destroyed first
};

/// Names a registered buffer on any PE of its node. Plain data: the program passes it on as it
/// likes. Signed with the job's secret, so a damaged one is refused.
struct BufferDescriptor {
  std::uint32_t magic = 0;
  std::int32_t pe = -1;
  std::uint32_t slot = 0;
  std::uint32_t writable = 0; ///< 0: only get
  std::uint64_t generation = 0;
  std::uint64_t address = 0; ///< on its PE
  std::uint64_t size_bytes = 0;
  std::uint32_t on_gpu = 0; ///< memory of its PE's GPU
  std::uint32_t reserved[3] = {0, 0, 0};
  std::uint64_t signature = 0;
};
static_assert(sizeof(BufferDescriptor) == 64);

struct BuffersConfig {
  int pe = 0;
  std::vector<int> users; ///< the PEs that can share memory with this one, itself among them; the
                          ///< same on all of them
  JobSecret secret{};
  JobHealth* health = nullptr;    ///< not owned
  HeapBacking* backing = nullptr; ///< not owned
  double timeout_s = 60;
  std::size_t max_buffers = 4096;
  std::size_t staging_bytes = std::size_t{256} << 10;
  std::size_t open_limit = 256; ///< buffers of other PEs that stay mapped
  buffers::AllowedPaths allowed;
  /// Whether the address is in the symmetric heap, which needs no registration.
  std::function<bool(const void*)> is_heap;
  buffers::GpuBufferBackend* gpu = nullptr; ///< not owned; nullptr: the job has no GPUs
};

/// One object per PE. Creates no thread and no socket before the first registration. Thread safe.
class Buffers {
public:
  explicit Buffers(BuffersConfig config);
  /// Ends all registrations without waiting; other PEs' later operations on them fail.
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  /// Registers memory of the host or of this PE's GPU. Not collective. Private host memory becomes
  /// shared memory in place, in whole pages, until it is unregistered; memory for which that is
  /// impossible is reached by a slower path (docs/explanation/buffers.md). Register before the
  /// memory is freed, and free it after remove(). Buffers may overlap. Throws Error (usage) for
  /// memory that is unmapped, unreadable, part of the symmetric heap, on another GPU, or managed by
  /// CUDA.
  /// @param may_replace_pages false for memory that a device has pinned
  BufferHandle add(void* address, std::size_t size_bytes, bool may_replace_pages = true);
  /// Unregisters: waits until operations of other PEs that are in flight have completed; later ones
  /// fail. On return host memory is private again, and no PE maps GPU memory. Throws Error: usage
  /// for a stale handle; deadline, naming the PE that still uses the buffer.
  void remove(const BufferHandle& handle);

  BufferDescriptor describe(const BufferHandle& handle) const;
  /// The youngest registration that begins at this address.
  std::optional<BufferHandle> starting_at(const void* address) const;

  /// Copies from any local memory into a registered buffer of any PE of the node. Complete on
  /// return, and visible to a PE that observes a later signal or atomic of this PE. Throws Error:
  /// usage for a damaged or stale descriptor, a range outside of the buffer or a put to read-only
  /// memory; unavailable; deadline.
  void put(const BufferDescriptor& target, std::uint64_t offset_bytes, const void* source,
           std::size_t size_bytes);
  void get(void* target, const BufferDescriptor& source, std::uint64_t offset_bytes,
           std::size_t size_bytes);

  /// Keeps a buffer of any PE of the node open and gives its address here (BufferRef).
  BufferRef hold(const BufferDescriptor& buffer);

  /// The path that put() and get() of this buffer take. Opens the buffer.
  BufferPath path_to(const BufferDescriptor& buffer);
  /// Unmaps a buffer of another PE once no BufferRef holds it; otherwise it stays mapped for later
  /// operations, also after its owner has unregistered it. Nothing if it is not open.
  void close(const BufferDescriptor& buffer);
  /// How many buffers of other PEs are open here.
  std::size_t open_count() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
