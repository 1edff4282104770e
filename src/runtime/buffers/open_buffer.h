// A registered buffer of any PE, opened by this one: its path, its mapping and copies; and the
// cache of such buffers.
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

/// Reference counts of this process's mappings. A mapping that is still in use outlives its entry
/// in the cache; it is counted here until it is unmapped, which the owner must know before it frees
/// the memory. Thread safe.
class MappingRefcounts {
public:
  /// Counts one mapping while it lives: to be declared before the mapping.
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

  /// False if the deadline passed and there still is one.
  bool wait_until_gone(int owner_pe, const BufferHandle& handle, const Deadline& deadline);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, std::uint64_t>, int> counts_; ///< by owner and generation
};

// The pages of another process's buffer, mapped here contiguously.

class PagesView {
public:
  /// Throws Error (unavailable): a file is smaller than it should be, or the system refuses.
  PagesView(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
            bool writable);
  ~PagesView();
  PagesView(const PagesView&) = delete;
  PagesView& operator=(const PagesView&) = delete;
  std::byte* base() const { return base_; } ///< of the first page
  std::size_t size_bytes() const { return size_bytes_; }

private:
  void map(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
           bool writable);
  std::byte* base_ = nullptr;
  std::size_t size_bytes_ = 0;
};

} // namespace shmemctl::buffers

namespace shmemctl {

// One registered buffer of some PE, opened here: the path that its bytes take, and the copies.

/// How the bytes of an operation travel.
enum class BufferPathKind {
  zero_copy, ///< one copy, from where they are to where they shall be, by this PE's own loads and
             ///< stores (or by a NIC, or the copy engine of its GPU)
  attach,    ///< one copy, by the kernel (process_vm_writev, process_vm_readv)
  staged     ///< two copies, through shared memory in between
};
/// "zero-copy", "attach", "staged".
const char* to_string(BufferPathKind kind);

struct BufferPath {
  BufferPathKind kind = BufferPathKind::staged;
  std::string reason; ///< one clause: why this path and no faster one
};

namespace buffers {

struct AllowedPaths {
  bool zero_copy = true, attach = true;
};

/// What this PE opens buffers with.
struct Opener {
  std::uint32_t user = 0; ///< its number in the tables of others
  AllowedPaths allowed = {};
  GpuBufferBackend* gpu = nullptr; ///< not owned; nullptr: none
  std::shared_ptr<MappingRefcounts> book = {};
};

class OpenBuffer {
public:
  /// A buffer of this PE itself.
  OpenBuffer(int my_pe, const RegisteredBuffer& buffer,
             std::shared_ptr<const RegistrationTable> table, const Opener& opener);
  /// Another PE's: queries it, and tries the paths in order. Throws Error.
  OpenBuffer(std::shared_ptr<OwnerConnection> owner, const BufferHandle& handle,
             const Opener& opener);

  int owner_pe() const { return owner_pe_; }
  const BufferHandle& handle() const { return handle_; }
  const BufferPath& path() const { return path_; }
  const RegistrationTable& table() const { return *table_; }
  bool is_on_gpu() const { return on_gpu_; }
  bool is_writable() const { return writable_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Its first byte in this process; nullptr if it is not mapped here.
  std::byte* address() const { return pages_ ? at(0) : nullptr; }
  GpuBufferBackend* gpu() const { return opener_.gpu; }
  /// Whether the registration is still valid (acquire); it may end at any time.
  bool live() const {
    return table_->generation(handle_.slot).load(std::memory_order_acquire) == handle_.generation;
  }

  /// The caller holds a valid Lease and has checked the range. Throw Error (unavailable), or
  /// (usage) for a put to read-only memory.
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
  std::shared_ptr<OwnerConnection> owner_; ///< nullptr: this PE
  std::shared_ptr<const RegistrationTable> table_;
  std::optional<PagesView> view_;
  std::optional<MappingRefcounts::Entry> entry_; ///< destroyed after the mapping
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

namespace shmemctl::buffers {

/// By owner and slot. A newer registration in a slot replaces the entry of an older one, which
/// never becomes valid again. Users of an entry hold a reference, so an evicted one stays mapped
/// until its last user is done. Thread safe.
class OpenCache {
public:
  explicit OpenCache(std::size_t limit) : limit_(limit) {}

  /// The entry of exactly this registration, which becomes the most recently used; or nullptr.
  std::shared_ptr<const OpenBuffer> find(int owner_pe, const BufferHandle& handle);
  /// Adds it, unless a younger registration has the slot; evicts the slot's previous entry, those
  /// whose registration has ended, and the least recently used beyond the limit.
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
