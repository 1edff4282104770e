// One registered buffer of some PE, opened here: which way its bytes take, and the copies.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/runtime/buffers/owner_link.h"
#include "src/runtime/buffers/pages_view.h"

namespace shmemctl {

/// How the bytes of an operation travel.
enum class BufferWay {
  zero_copy, ///< one copy, from where they are to where they shall be, by this PE's own loads and
             ///< stores (or by a NIC)
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

class OpenBuffer {
public:
  /// A buffer of this PE itself.
  OpenBuffer(int my_pe, const RegisteredBuffer& mine, std::shared_ptr<const Control> control);
  /// Another PE's: asks it, and tries the ways in order. Throws Error.
  OpenBuffer(std::shared_ptr<OwnerLink> owner, const BufferHandle& handle, std::uint32_t user,
             const WaysAllowed& allowed);

  int owner_pe() const { return owner_pe_; }
  const BufferHandle& handle() const { return handle_; }
  const BufferPath& path() const { return path_; }
  const Control& control() const { return *control_; }
  /// Whether the registration has not ended yet, as far as can be seen now.
  bool live() const {
    return control_->generation(handle_.slot).load(std::memory_order_acquire) == handle_.generation;
  }

  /// The caller holds a valid Lease and has checked the range. Throw Error (unavailable), or
  /// (usage) for a put to read-only memory.
  void put(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes) const;
  void get(void* target, std::uint64_t offset_bytes, std::size_t size_bytes) const;

private:
  void choose_way(const Reply& reply, const WaysAllowed& allowed);
  std::string why_not_mapped(const Reply& reply, const WaysAllowed& allowed);
  std::string why_not_attached(const WaysAllowed& allowed) const;
  void attach(bool put, std::uint64_t offset_bytes, void* local, std::size_t size_bytes) const;
  /// Where a byte of the buffer is mapped here: the one place that adds gap and offset.
  std::byte* at(std::uint64_t offset_bytes) const {
    return pages_ + position(page_gap_bytes_, offset_bytes);
  }

  int owner_pe_;
  BufferHandle handle_;
  std::uint32_t user_ = 0;
  std::shared_ptr<OwnerLink> owner_; ///< nullptr: this PE
  std::shared_ptr<const Control> control_;
  std::optional<PagesView> view_;
  std::byte* pages_ = nullptr; ///< the first page, if mapped here
  std::size_t page_gap_bytes_ = 0;
  std::uintptr_t address_ = 0; ///< in the owner's address space
  bool writable_ = true;
  BufferPath path_;
};

} // namespace buffers

} // namespace shmemctl
