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

/// A reference to an open buffer; while it exists, the owner's remove() waits. Destroy it before
/// the runtime, and after everything that uses the address has ended (streams synchronised, graphs
/// not launched again).
class BufferRef {
public:
  /// Throws Error: unavailable, with the reason, if the buffer is not mapped here; usage if the
  /// registration has ended.
  BufferRef(std::shared_ptr<const buffers::OpenBuffer> opened, std::uint32_t user);

  /// The address of the buffer's first byte in this process. GPU memory is for kernels and copies
  /// of this PE's device, host memory for loads and stores of this process.
  std::byte* address() const { return opened_->address(); }
  std::size_t size_bytes() const { return opened_->size_bytes(); }
  bool is_on_gpu() const { return opened_->is_on_gpu(); }
  bool is_writable() const { return opened_->is_writable(); }

  /// Enqueues a copy in a stream of this PE's device (`stream` is a CUstream), which may be
  /// capturing a graph. Local memory may be host memory or memory of this PE's GPU, and must not be
  /// changed until the copy has been executed. Throws Error: usage for a range outside of the
  /// buffer, read-only memory or a job without GPUs; unavailable.
  void put_on_stream(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes,
                     void* stream) const;
  void get_on_stream(void* target, std::uint64_t offset_bytes, std::size_t size_bytes,
                     void* stream) const;

private:
  buffers::GpuBufferBackend& engine() const;
  std::shared_ptr<const buffers::OpenBuffer> opened_;
  std::unique_ptr<buffers::OperationGuard> lease_; ///< destroyed first
};

/// Identifies a registered buffer on any PE of its node. Plain data, which the program may send by
/// any means. Signed with the job's secret, so that a damaged descriptor is refused.
struct BufferDescriptor {
  std::uint32_t magic = 0;
  std::int32_t pe = -1;
  std::uint32_t slot = 0;
  std::uint32_t writable = 0; ///< 0: only gets are allowed
  std::uint64_t generation = 0;
  std::uint64_t address = 0; ///< in the owner's address space
  std::uint64_t size_bytes = 0;
  std::uint32_t on_gpu = 0; ///< 1: memory of the owner's GPU
  std::uint32_t reserved[3] = {0, 0, 0};
  std::uint64_t signature = 0;
};
static_assert(sizeof(BufferDescriptor) == 64);

struct BuffersConfig {
  int pe = 0;
  std::vector<int> users; ///< the PEs that can share memory with this PE, including itself; the
                          ///< same on all of them
  JobSecret secret{};
  JobHealth* health = nullptr;    ///< not owned
  HeapBacking* backing = nullptr; ///< not owned
  double timeout_s = 60;
  std::size_t max_buffers = 4096;
  std::size_t staging_bytes = std::size_t{256} << 10;
  std::size_t open_limit = 256; ///< maximum number of buffers (of any PE) that stay open
  buffers::AllowedPaths allowed;
  /// Returns whether the address is in the symmetric heap, which needs no registration.
  std::function<bool(const void*)> is_heap;
  buffers::GpuBufferBackend* gpu = nullptr; ///< not owned; nullptr: the job has no GPUs
};

/// The registered buffers of one PE. Creates no thread and no socket before it registers a buffer
/// or opens one of another PE. Thread safe.
class Buffers {
public:
  explicit Buffers(BuffersConfig config);
  /// Ends all registrations without waiting; later operations of other PEs on the buffers fail.
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  /// Registers host memory or memory of this PE's GPU. Not collective. Private host memory becomes
  /// shared memory in place, in whole pages, until it is unregistered; if that is impossible, other
  /// PEs access it by a slower path (docs/explanation/buffers.md). The memory must not be freed
  /// before remove(). Buffers may overlap. Throws Error: usage, e.g. for memory that is not
  /// mapped, not readable, in the symmetric heap, on another GPU or managed by CUDA; unavailable.
  /// @param may_replace_pages false for memory that a device has pinned
  BufferHandle add(void* address, std::size_t size_bytes, bool may_replace_pages = true);
  /// Unregisters: waits until operations in flight have completed and no BufferRef is left; later
  /// operations fail. On return no PE maps GPU memory, and host pages that no other buffer needs
  /// are private. Throws Error: usage for a stale handle; deadline, naming the PE that uses it.
  void remove(const BufferHandle& handle);

  BufferDescriptor describe(const BufferHandle& handle) const;
  /// The latest registration of a buffer that begins at this address.
  std::optional<BufferHandle> starting_at(const void* address) const;

  /// Copies from any local memory into a registered buffer of any PE of the node. Complete on
  /// return, and visible to a PE that observes a later signal or atomic of this PE. Throws Error:
  /// usage for a damaged or stale descriptor, a range outside of the buffer or a put to read-only
  /// memory; unavailable; deadline.
  void put(const BufferDescriptor& target, std::uint64_t offset_bytes, const void* source,
           std::size_t size_bytes);
  void get(void* target, const BufferDescriptor& source, std::uint64_t offset_bytes,
           std::size_t size_bytes);

  /// Opens a buffer of any PE of the node, and keeps it open while the BufferRef exists.
  BufferRef hold(const BufferDescriptor& buffer);

  /// The path that put() and get() of this buffer take. Opens the buffer.
  BufferPath path_to(const BufferDescriptor& buffer);
  /// Unmaps a buffer of another PE once no BufferRef holds it. Otherwise it stays mapped for
  /// later calls (host memory even after remove()), up to open_limit buffers in all.
  void close(const BufferDescriptor& buffer);
  /// How many buffers are open here: of other PEs, and of this PE if it has used their descriptors.
  std::size_t open_count() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
