// Gives a child made by fork() its own copy of memory that registration made shared.
#pragma once

#include <mutex>
#include <vector>

#include "src/memory/buffers/page_refcounts.h"

namespace shmemctl {

/// While it exists, fork() holds the mutex, copies what the ledger has adopted, and puts the copies
/// in the child's place of it: as ever, parent and child do not see each other's writes. If there
/// is no memory for a copy, the child gets pages that are copied when it writes to them.
class ForkGuard {
public:
  ForkGuard(std::mutex& mutex, PageLedger& ledger);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard(); // NOLINT(bugprone-exception-escape): see there

private:
  friend struct ForkHandlers;
  struct Snapshot {
    SharedPiece piece;
    void* copy = nullptr; ///< nullptr: there was no memory
  };
  void before() noexcept;
  void in_parent() noexcept;
  void in_child() noexcept;

  std::mutex& mutex_;
  PageLedger& ledger_;
  std::vector<Snapshot> snapshots_; ///< while fork() runs
};

} // namespace shmemctl
