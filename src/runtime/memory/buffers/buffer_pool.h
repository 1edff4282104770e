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

/// What a registered buffer is made of, and how other processes map it.
enum class BufferMemory : std::uint32_t {
  host,            ///< pages of files
  gpu_descriptors, ///< of a GPU (cuMemCreate): a descriptor for each allocation
  gpu_handle,      ///< of a GPU (cudaMalloc): CUDA's handle of one allocation
  gpu_unshared     ///< of a GPU: other processes cannot map it
};

/// One allocation (or mapping of one) that a buffer touches.
struct GpuPiece {
  std::uint64_t begin = 0; ///< in the owner's address space
  std::uint64_t size_bytes = 0;
  std::uint64_t id = 0; ///< CUDA's, which it never gives again; 0 if it has none
  bool operator==(const GpuPiece&) const = default;
};

/// Holds what was exported until the buffer is unregistered.
struct GpuShare {
  BufferMemory memory = BufferMemory::gpu_unshared;
  std::string device;                ///< uuid
  std::vector<GpuPiece> pieces;      ///< ascending, without a gap; the first holds the first byte
  std::vector<FileDescriptor> files; ///< by piece, of gpu_descriptors
  std::string handle;                ///< of gpu_handle
  std::string reason;                ///< one clause: why this kind, or why none
};

/// Names one registration. Slots are used again, generations never.
struct BufferHandle {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0; ///< 0: none
  bool operator==(const BufferHandle&) const = default;
};

struct RegisteredBuffer {
  BufferHandle handle;
  BufferExtent extent;
  bool writable = true;   ///< peers may put; else only get
  bool shareable = false; ///< peers can map its pages
  std::string reason;     ///< why they can or cannot
  std::shared_ptr<const GpuShare>
      gpu; ///< of memory of a GPU, which has no pages here; else nullptr
};

/// What peers need to map a buffer: files and offsets, and the gap in front of its first byte.
struct PeerToPeerHandle {
  std::size_t page_gap_bytes = 0;
  std::vector<SharedPiece> pieces; ///< ascending, without a gap between them
};

/// Thread safe.
class BufferPool {
public:
  BufferPool(HeapBacking& backing, std::size_t max_buffers);
  /// Gives all pages back.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// Any readable memory; buffers may overlap. Pages that cannot be shared are no error: the
  /// buffer then says why. Throws Error: usage for memory that is not there or that was freed while
  /// a buffer in it was registered; unavailable when all slots are in use.
  BufferHandle add(const void* address, std::size_t size_bytes, bool may_replace_pages = true);
  /// Memory of a GPU, of which this only keeps the books. Throws Error (unavailable) when all slots
  /// are in use.
  BufferHandle add_gpu(const void* address, std::size_t size_bytes,
                       std::shared_ptr<const GpuShare> gpu);
  /// From now on the handle is stale: the buffer is neither found nor exported. Throws Error
  /// (usage) for a handle that is stale already.
  void withdraw(const BufferHandle& handle);
  /// After withdraw(), when no operation uses the pages any more: makes those private that no other
  /// buffer needs.
  void remove(const BufferHandle& handle);

  /// Until remove(): operations that began before withdraw() go on. Throws Error (usage) for a
  /// stale handle.
  RegisteredBuffer get(const BufferHandle& handle) const;
  /// The youngest buffer that begins there.
  std::optional<BufferHandle> starting_at(const void* address) const;
  std::vector<BufferHandle> handles() const;
  /// Throws Error: usage for a stale handle; unavailable if the buffer is not shareable, or its
  /// memory was unmapped.
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
  ForkGuard fork_guard_{mutex_, refcounts_}; // last: it uses what is above
};

} // namespace shmemctl
