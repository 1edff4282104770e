// Gives a child process of fork() its own copy of memory that registration made shared.
#pragma once

#include <mutex>
#include <vector>

#include "src/runtime/memory/buffers/page_refcounts.h"

namespace shmemctl {

/// While it exists, fork() holds the mutex, copies the adopted pages, and maps the copies at the
/// pages' addresses in the child, so that parent and child do not see each other's writes, as with
/// private memory. If there is no memory for a copy, the child gets a copy-on-write mapping.
class ForkGuard {
public:
  ForkGuard(std::mutex& mutex, PageRefcounts& refcounts);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard(); // NOLINT(bugprone-exception-escape): see ForkGuard::~ForkGuard()

private:
  friend struct ForkHandlers;
  struct Snapshot {
    SharedPiece piece;
    void* copy = nullptr; ///< nullptr if no memory was left
  };
  void before() noexcept;
  void in_parent() noexcept;
  void in_child() noexcept;

  std::mutex& mutex_;
  PageRefcounts& refcounts_;
  std::vector<Snapshot> snapshots_; ///< while fork() runs
};

} // namespace shmemctl
