// One registered buffer of some PE, opened here: which way its bytes take, and the copies.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/runtime/buffers/gpu_side.h"
#include "src/runtime/buffers/mapping_book.h"
#include "src/runtime/buffers/owner_link.h"
#include "src/runtime/buffers/pages_view.h"

namespace shmemctl {

/// How the bytes of an operation travel.
enum class BufferWay {
  zero_copy, ///< one copy, from where they are to where they shall be, by this PE's own loads and
             ///< stores (or by a NIC, or the copy engine of its GPU)
  attach,    ///< one copy, by the kernel (process_vm_writev, process_vm_readv)
  staged     ///< two copies, through shared memory in between
};
/// "zero-copy", "attach", "staged".
const char* to_string(BufferWay way);

struct BufferPath {
  BufferWay way = BufferWay::staged;
  std::string reason; ///< one clause: why this way and no faster one
};

namespace buffers {

struct WaysAllowed {
  bool zero_copy = true, attach = true;
};

/// What this PE opens buffers with.
struct Opener {
  std::uint32_t user = 0; ///< its number in the tables of others
  WaysAllowed allowed = {};
  GpuSide* gpu = nullptr; ///< not owned; nullptr: there is none
  std::shared_ptr<MappingBook> book = {};
};

class OpenBuffer {
public:
  /// A buffer of this PE itself.
  OpenBuffer(int my_pe, const RegisteredBuffer& mine, std::shared_ptr<const Control> control,
             const Opener& opener);
  /// Another PE's: asks it, and tries the ways in order. Throws Error.
  OpenBuffer(std::shared_ptr<OwnerLink> owner, const BufferHandle& handle, const Opener& opener);

  int owner_pe() const { return owner_pe_; }
  const BufferHandle& handle() const { return handle_; }
  const BufferPath& path() const { return path_; }
  const Control& control() const { return *control_; }
  bool is_on_gpu() const { return on_gpu_; }
  bool is_writable() const { return writable_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Its first byte in this process; nullptr if it is not mapped here.
  std::byte* address() const { return pages_ ? at(0) : nullptr; }
  GpuSide* gpu() const { return opener_.gpu; }
  /// Whether the registration has not ended yet, as far as can be seen now.
  bool live() const {
    return control_->generation(handle_.slot).load(std::memory_order_acquire) == handle_.generation;
  }

  /// The caller holds a valid Lease and has checked the range. Throw Error (unavailable), or
  /// (usage) for a put to read-only memory.
  void put(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes) const;
  void get(void* target, std::uint64_t offset_bytes, std::size_t size_bytes) const;

  void require_writable() const;

private:
  void choose_way(const Reply& reply);
  std::string why_not_mapped(const Reply& reply);
  std::string why_gpu_not_mapped(const Reply& reply);
  std::string why_not_attached() const;
  bool is_gpu_local(const void* local) const {
    return opener_.gpu && opener_.gpu->is_gpu_memory(local);
  }
  LocalCopy copy_of(const void* local) const;
  void attach(bool put, std::uint64_t offset_bytes, void* local, std::size_t size_bytes) const;
  void attach_gpu(bool put, std::uint64_t offset_bytes, void* local, std::size_t size_bytes) const;
  /// Where a byte of the buffer is mapped here: the one place that adds gap and offset.
  std::byte* at(std::uint64_t offset_bytes) const {
    return pages_ + position(page_gap_bytes_, offset_bytes);
  }

  int owner_pe_;
  BufferHandle handle_;
  Opener opener_;
  std::shared_ptr<OwnerLink> owner_; ///< nullptr: this PE
  std::shared_ptr<const Control> control_;
  std::optional<PagesView> view_;
  std::optional<MappingBook::Entry> entry_; ///< goes after the mapping
  std::unique_ptr<GpuMapping> mapping_;
  std::byte* pages_ = nullptr; ///< the first page (or allocation of a GPU), if mapped here
  std::size_t page_gap_bytes_ = 0;
  std::uintptr_t address_ = 0; ///< in the owner's address space
  std::size_t size_bytes_ = 0;
  bool writable_ = true, on_gpu_ = false;
  BufferPath path_;
};

} // namespace buffers

} // namespace shmemctl
