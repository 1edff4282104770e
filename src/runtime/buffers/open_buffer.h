// A registered buffer of any PE, opened by this PE: its path, its mapping and copies; and the cache
// of open buffers.
#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/file_descriptor.h"
#include "src/runtime/buffers/gpu_buffer_backend.h"
#include "src/runtime/buffers/message.h"
#include "src/runtime/buffers/owner_connection.h"
#include "src/runtime/memory/buffers/buffer_pool.h"

namespace shmemctl::buffers {

/// Counts this process's mappings of GPU buffers of other PEs. A mapping that is in use outlives
/// its entry in the cache; it is counted here until it is unmapped, so that the owner can wait for
/// that before it frees the memory. Thread safe.
class MappingRefcounts {
public:
  /// Counts one mapping while it exists. Must be declared before the mapping.
  class Entry {
  public:
    Entry(std::shared_ptr<MappingRefcounts> book, int owner_pe, const BufferHandle& handle);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

  private:
    std::shared_ptr<MappingRefcounts> book_;
    std::pair<int, std::uint64_t> key_;
  };

  /// Waits until no mapping of the buffer is left; false if the deadline passes first.
  bool wait_until_gone(int owner_pe, const BufferHandle& handle, const Deadline& deadline);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, std::uint64_t>, int> counts_; ///< by owner and generation
};

// The pages of another process's buffer, mapped here contiguously.

class PagesView {
public:
  /// Throws Error (unavailable) if a file is smaller than its part, or the kernel refuses.
  PagesView(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
            bool writable);
  ~PagesView();
  PagesView(const PagesView&) = delete;
  PagesView& operator=(const PagesView&) = delete;
  std::byte* base() const { return base_; } ///< address of the first page
  std::size_t size_bytes() const { return size_bytes_; }

private:
  void map(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
           bool writable);
  std::byte* base_ = nullptr;
  std::size_t size_bytes_ = 0;
};

} // namespace shmemctl::buffers

namespace shmemctl {

// One registered buffer of some PE, opened here: its path, and the copies.

/// How the data of an operation are copied.
enum class BufferPathKind {
  zero_copy, ///< one copy, directly from source to destination, by this PE's loads and stores (or
             ///< by the copy engine of its GPU)
  attach,    ///< one copy, by the kernel (process_vm_writev or _readv); two from or to a local GPU
  staged     ///< two copies, through shared memory in between
};
/// "zero-copy", "attach", "staged".
const char* to_string(BufferPathKind kind);

struct BufferPath {
  BufferPathKind kind = BufferPathKind::staged;
  std::string reason; ///< one clause: why this path, and why not a faster one
};

namespace buffers {

struct AllowedPaths {
  bool zero_copy = true, attach = true;
};

/// This PE's part in opening buffers.
struct Opener {
  std::uint32_t user = 0; ///< this PE's index in other PEs' registration tables
  AllowedPaths allowed = {};
  GpuBufferBackend* gpu = nullptr; ///< not owned; nullptr: none
  std::shared_ptr<MappingRefcounts> book = {};
};

class OpenBuffer {
public:
  /// A buffer of this PE itself.
  OpenBuffer(int my_pe, const RegisteredBuffer& buffer,
             std::shared_ptr<const RegistrationTable> table, const Opener& opener);
  /// A buffer of another PE: queries the owner, and tries the paths in order. Throws Error.
  OpenBuffer(std::shared_ptr<OwnerConnection> owner, const BufferHandle& handle,
             const Opener& opener);

  int owner_pe() const { return owner_pe_; }
  const BufferHandle& handle() const { return handle_; }
  const BufferPath& path() const { return path_; }
  const RegistrationTable& table() const { return *table_; }
  bool is_on_gpu() const { return on_gpu_; }
  bool is_writable() const { return writable_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// The address of its first byte in this process; nullptr if it is not mapped here.
  std::byte* address() const { return pages_ ? at(0) : nullptr; }
  GpuBufferBackend* gpu() const { return opener_.gpu; }
  /// Whether the registration is still valid (acquire); it may end at any time.
  bool live() const {
    return table_->generation(handle_.slot).load(std::memory_order_acquire) == handle_.generation;
  }

  /// The caller must hold a valid OperationGuard and have checked the range. Throw Error:
  /// unavailable, deadline, or usage, e.g. for a put to read-only memory.
  void put(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes) const;
  void get(void* target, std::uint64_t offset_bytes, std::size_t size_bytes) const;

  void require_writable() const;

private:
  void choose_path(const Reply& reply);
  std::string why_not_mapped(const Reply& reply);
  std::string why_gpu_not_mapped(const Reply& reply);
  std::string why_not_attached() const;
  bool is_gpu_local(const void* local) const {
    return opener_.gpu && opener_.gpu->is_gpu_memory(local);
  }
  LocalCopy copy_of(const void* local) const;
  void attach(bool put, std::uint64_t offset_bytes, void* local, std::size_t size_bytes) const;
  void attach_gpu(bool put, std::uint64_t offset_bytes, void* local, std::size_t size_bytes) const;
  /// The address of a byte of the buffer in this process: the only place that adds gap and offset.
  std::byte* at(std::uint64_t offset_bytes) const {
    return pages_ + position(page_gap_bytes_, offset_bytes);
  }

  int owner_pe_;
  BufferHandle handle_;
  Opener opener_;
  std::shared_ptr<OwnerConnection> owner_; ///< nullptr: this PE is the owner
  std::shared_ptr<const RegistrationTable> table_;
  std::optional<PagesView> view_;
  std::optional<MappingRefcounts::Entry> entry_; ///< destroyed after the mapping
  std::unique_ptr<GpuMapping> mapping_;
  std::byte* pages_ = nullptr; ///< address of the first page (or GPU allocation), if mapped here
  std::size_t page_gap_bytes_ = 0;
  std::uintptr_t address_ = 0; ///< in the owner's address space
  std::size_t size_bytes_ = 0;
  bool writable_ = true, on_gpu_ = false;
  BufferPath path_;
};

} // namespace buffers

} // namespace shmemctl

namespace shmemctl::buffers {

/// Open buffers by owner and slot. A newer registration in a slot replaces the entry of an older
/// one, which never becomes valid again. Users of an entry hold a reference, so that an evicted
/// buffer stays mapped until its last use ends. Thread safe.
class OpenCache {
public:
  explicit OpenCache(std::size_t limit) : limit_(limit) {}

  /// The entry of exactly this registration, which becomes the most recently used; or nullptr.
  std::shared_ptr<const OpenBuffer> find(int owner_pe, const BufferHandle& handle);
  /// Adds the buffer, unless a newer registration is in its slot. Evicts the slot's previous entry,
  /// entries whose registration has ended, and the least recently used ones beyond the limit.
  void insert(std::shared_ptr<const OpenBuffer> opened);
  void erase(int owner_pe, const BufferHandle& handle);
  std::size_t size() const;

private:
  using Entries = std::list<std::shared_ptr<const OpenBuffer>>;
  Entries::iterator position(int owner_pe, std::uint32_t slot);

  std::size_t limit_;
  mutable std::mutex mutex_;
  Entries entries_; ///< most recently used first
};

} // namespace shmemctl::buffers
