#include "src/runtime/memory/buffers/fork_guard.h"

#include <algorithm>
#include <pthread.h>
#include <sys/mman.h>
#include <utility>

#include "src/base/error.h"
#include "src/runtime/memory/buffers/page_sharing.h"
#include "src/runtime/memory/process_vm_copy.h"

namespace shmemctl {

/// The handlers of fork(), which take no argument and cannot be uninstalled.
struct ForkHandlers {
  std::mutex mutex;
  std::vector<ForkGuard*> guards;

  static ForkHandlers& instance() {
    // Never destroyed: a process may fork during static destruction.
    static ForkHandlers& handlers = *std::make_unique<ForkHandlers>().release();
    static const int error = ::pthread_atfork(before, in_parent, in_child);
    if (error != 0)
      throw system_error("fork()", "install its handlers", error, "free some memory");
    return handlers;
  }
  // Handlers cannot make fork() fail, so an exception in them (no memory) ends the process.
  // NOLINTBEGIN(bugprone-exception-escape)
  static void before() noexcept {
    instance().mutex.lock();
    for (ForkGuard* guard : instance().guards)
      guard->before();
  }
  static void in_parent() noexcept {
    for (ForkGuard* guard : instance().guards)
      guard->in_parent();
    instance().mutex.unlock();
  }
  static void in_child() noexcept {
    for (ForkGuard* guard : instance().guards)
      guard->in_child();
    instance().mutex.unlock();
  }
  // NOLINTEND(bugprone-exception-escape)
};

namespace {

void* copy_of(const SharedPiece& piece) noexcept {
  const std::size_t size_bytes = piece.pages.size_bytes();
  void* copy =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED)
    return nullptr;
  if (read_from_file(piece.file->descriptor.get(), piece.offset_bytes, copy, size_bytes) == 0)
    return copy;
  ::munmap(copy, size_bytes);
  return nullptr;
}

} // namespace

ForkGuard::ForkGuard(std::mutex& mutex, PageRefcounts& refcounts)
    : mutex_(mutex), refcounts_(refcounts) {
  ForkHandlers& handlers = ForkHandlers::instance();
  const std::lock_guard lock(handlers.mutex);
  handlers.guards.push_back(this);
}

ForkGuard::~ForkGuard() { // NOLINT(bugprone-exception-escape): instance() was made before
  ForkHandlers& handlers = ForkHandlers::instance();
  const std::lock_guard lock(handlers.mutex);
  std::erase(handlers.guards, this);
}

void ForkGuard::before() noexcept {
  mutex_.lock();
  if (refcounts_.all().empty())
    return;
  const std::vector<MappedArea> map = read_address_map();
  for (const auto& [begin, piece] : refcounts_.all()) {
    if (!piece.file->adopted)
      continue;
    for (const MappedArea& part : still_mapped(map, piece)) {
      const SharedPiece there{part.pages, piece.file, part.offset_bytes, 0};
      snapshots_.push_back({there, copy_of(there)});
    }
  }
}

void ForkGuard::in_parent() noexcept {
  for (const Snapshot& snapshot : snapshots_)
    if (snapshot.copy)
      ::munmap(snapshot.copy, snapshot.piece.pages.size_bytes());
  snapshots_.clear();
  mutex_.unlock();
}

void ForkGuard::in_child() noexcept {
  for (const Snapshot& snapshot : snapshots_) {
    const PageSpan& pages = snapshot.piece.pages;
    void* place = reinterpret_cast<void*>(pages.begin);
    if (!snapshot.copy || !move_pages(snapshot.copy, place, pages.size_bytes()))
      // If this fails too, the pages stay shared with the parent.
      static_cast<void>(::mmap(place, pages.size_bytes(), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_FIXED, snapshot.piece.file->descriptor.get(),
                               static_cast<off_t>(snapshot.piece.offset_bytes)));
  }
  snapshots_.clear();
  refcounts_ = {}; // the files belong to the parent
  mutex_.unlock();
}

} // namespace shmemctl
