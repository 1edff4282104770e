// A table in shared memory of the valid registrations and the operations in flight on each.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/file_descriptor.h"
#include "src/runtime/memory/backing.h"
#include "src/runtime/memory/buffers/buffer_pool.h"

namespace shmemctl::buffers {

struct TableShape {
  std::uint32_t slots = 0;
  std::uint32_t users = 0;         ///< PEs of the node
  std::uint64_t staging_bytes = 0; ///< staging area of each user, a multiple of the page size
  bool operator==(const TableShape&) const = default;
};
/// Throws Error (unavailable) for a shape that no PE of this version creates.
void require_plausible(const TableShape& shape);

/// One owner's table, mapped by the owner and by every PE that has connected to it. It contains for
/// each slot a generation (0: none) and, for each user, the number of its operations in flight;
/// then the staging areas of all users. Users and owner synchronise without messages, as in
/// Dekker's algorithm (seq_cst): a user increments its counter and then reads the generation; the
/// owner clears the generation and then waits until all counters are 0.
class RegistrationTable {
public:
  /// For the owner: reserves address space for all slots; memory is committed slot by slot.
  explicit RegistrationTable(const TableShape& shape, const char* backing_kind);
  /// For a user: maps the owner's table.
  RegistrationTable(FileDescriptor descriptor, const TableShape& shape);
  ~RegistrationTable();
  RegistrationTable(const RegistrationTable&) = delete;
  RegistrationTable& operator=(const RegistrationTable&) = delete;

  const TableShape& shape() const { return shape_; }
  int descriptor() const { return file_.get(); }
  /// Throw Error (unavailable) if there is no memory.
  void commit_slot(std::uint32_t slot);
  void commit_stage(std::uint32_t user);

  std::atomic_ref<std::uint64_t> generation(std::uint32_t slot) const { return cell(slot, 0); }
  std::atomic_ref<std::uint64_t> in_flight(std::uint32_t slot, std::uint32_t user) const {
    return cell(slot, 1 + user);
  }
  std::byte* stage(std::uint32_t user) const { return base_ + stage_offset_bytes(user); }
  std::uint64_t stage_offset_bytes(std::uint32_t user) const;

private:
  static constexpr std::size_t line_bytes = 64; ///< each counter has its own cache line
  std::size_t slot_bytes() const { return (1 + std::size_t{shape_.users}) * line_bytes; }
  std::size_t table_bytes() const;
  std::size_t size_bytes() const { return table_bytes() + shape_.users * shape_.staging_bytes; }
  std::atomic_ref<std::uint64_t> cell(std::uint32_t slot, std::size_t line) const {
    return std::atomic_ref(
        *reinterpret_cast<std::uint64_t*>(base_ + slot * slot_bytes() + line * line_bytes));
  }
  void map();
  void commit(std::uint64_t offset_bytes, std::size_t bytes);

  TableShape shape_;
  FileDescriptor file_;
  std::byte* base_ = nullptr;
};

/// Counts one operation in flight while it exists. The operation may access the buffer only if
/// valid().
class OperationGuard {
public:
  OperationGuard(const RegistrationTable& table, const BufferHandle& handle, std::uint32_t user)
      : in_flight_(table.in_flight(handle.slot, user)) {
    in_flight_.fetch_add(1, std::memory_order_seq_cst);
    valid_ = table.generation(handle.slot).load(std::memory_order_seq_cst) == handle.generation;
  }
  OperationGuard(const OperationGuard&) = delete;
  OperationGuard& operator=(const OperationGuard&) = delete;
  /// Release: the operation's writes are visible before the owner sees that it has ended.
  ~OperationGuard() { in_flight_.fetch_sub(1, std::memory_order_release); }
  bool valid() const { return valid_; }

private:
  std::atomic_ref<std::uint64_t> in_flight_;
  bool valid_ = false;
};

} // namespace shmemctl::buffers
