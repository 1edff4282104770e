// The registered buffers of one process: memory outside of the symmetric heap.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/runtime/memory/buffers/fork_guard.h"
#include "src/runtime/memory/buffers/page_sharing.h"

namespace shmemctl {

/// The kind of memory of a registered buffer, and how other processes map it.
enum class BufferMemory : std::uint32_t {
  host,            ///< host memory: pages of files
  gpu_descriptors, ///< GPU memory (cuMemCreate), by a descriptor for each allocation
  gpu_handle,      ///< GPU memory (cudaMalloc), by CUDA's IPC handle of one allocation
  gpu_unshared     ///< GPU memory that other processes cannot map
};

/// One allocation (or mapping of one) that contains a part of a buffer.
struct GpuPiece {
  std::uint64_t begin = 0; ///< in the owner's address space
  std::uint64_t size_bytes = 0;
  std::uint64_t id = 0; ///< CUDA's id, which CUDA never reuses; 0 if the memory has none
  bool operator==(const GpuPiece&) const = default;
};

/// The exported handles of a buffer in GPU memory, kept until the buffer is unregistered.
struct GpuShare {
  BufferMemory memory = BufferMemory::gpu_unshared;
  std::string device;                ///< UUID
  std::vector<GpuPiece> pieces;      ///< ascending, without gaps; the first contains the first byte
  std::vector<FileDescriptor> files; ///< gpu_descriptors: by piece
  std::string handle;                ///< gpu_handle: the IPC handle
  std::string reason;                ///< one clause: why this kind, or why it cannot be shared
};

/// Identifies one registration. Slots are reused, generations never.
struct BufferHandle {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0; ///< 0: none
  bool operator==(const BufferHandle&) const = default;
};

struct RegisteredBuffer {
  BufferHandle handle;
  BufferExtent extent;
  bool writable = true;   ///< peers may put; otherwise they may only get
  bool shareable = false; ///< peers can map its pages
  std::string reason;     ///< why other processes can or cannot map it
  std::shared_ptr<const GpuShare>
      gpu; ///< for a buffer in GPU memory, which has no pages here; else nullptr
};

/// What peers need in order to map a buffer: files and offsets, and the gap before its first byte.
struct PeerToPeerHandle {
  std::size_t page_gap_bytes = 0;
  std::vector<SharedPiece> pieces; ///< ascending, without gaps
};

/// Thread safe.
class BufferPool {
public:
  BufferPool(HeapBacking& backing, std::size_t max_buffers);
  /// Makes the pages private again that add() made shared.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// Registers any readable memory; buffers may overlap. Pages that cannot be shared are not an
  /// error; RegisteredBuffer::reason then says why. Throws Error: usage for memory that is unmapped
  /// or unreadable, or was freed while a buffer in it was registered; unavailable if all slots are
  /// in use.
  BufferHandle add(const void* address, std::size_t size_bytes, bool may_replace_pages = true);
  /// Registers GPU memory, for which the pool only stores `gpu`. Throws Error (unavailable) if all
  /// slots are in use.
  BufferHandle add_gpu(const void* address, std::size_t size_bytes,
                       std::shared_ptr<const GpuShare> gpu);
  /// From now on the handle is stale: the buffer is neither found nor exported. Throws Error
  /// (usage) for a handle that is already stale.
  void withdraw(const BufferHandle& handle);
  /// Frees the slot, and makes pages that no other buffer needs private again. Call it after
  /// withdraw(), when no operation uses the pages any more.
  void remove(const BufferHandle& handle);

  /// The buffer of the handle. Works until remove(), because operations that began before
  /// withdraw() continue. Throws Error (usage) for a stale handle.
  RegisteredBuffer get(const BufferHandle& handle) const;
  /// The latest registration of a buffer that begins at the address.
  std::optional<BufferHandle> starting_at(const void* address) const;
  std::vector<BufferHandle> handles() const;
  /// Throws Error: usage for a stale handle, or if the memory was unmapped; unavailable if the
  /// buffer is not shareable.
  PeerToPeerHandle export_pages(const BufferHandle& handle) const;

private:
  enum class State { free, open, withdrawn };
  struct Slot {
    State state = State::free;
    RegisteredBuffer buffer;
  };

  const Slot& checked(const BufferHandle& handle, State state) const;
  std::uint32_t take_slot();
  void share_missing(RegisteredBuffer& buffer, const std::vector<MappedArea>& map,
                     bool may_replace_pages);
  void release_unused();
  void require_present(const std::vector<MappedArea>& map, const PageSpan& pages) const;

  HeapBacking& backing_;
  std::size_t max_buffers_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  PageRefcounts refcounts_;
  std::uint64_t next_generation_ = 1;
  ForkGuard fork_guard_{mutex_, refcounts_}; // declared last: the guard uses the members above
};

} // namespace shmemctl
