#include "src/runtime/buffers/mapping_book.h"

namespace shmemctl::buffers {

namespace {
constexpr int wait_interval_ms = 100;
}

MappingBook::Entry::Entry(std::shared_ptr<MappingBook> book, int owner_pe,
                          const BufferHandle& handle)
    : book_(std::move(book)), key_(owner_pe, handle.generation) {
  const std::lock_guard lock(book_->mutex_);
  ++book_->counts_[key_];
}

MappingBook::Entry::~Entry() {
  const std::lock_guard lock(book_->mutex_);
  const auto found = book_->counts_.find(key_);
  if (--found->second == 0)
    book_->counts_.erase(found);
  book_->changed_.notify_all();
}

bool MappingBook::wait_until_gone(int owner_pe, const BufferHandle& handle,
                                  const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto gone = [&] { return counts_.count({owner_pe, handle.generation}) == 0; };
  while (!gone()) {
    if (deadline.passed())
      return false;
    changed_.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms(wait_interval_ms)), gone);
  }
  return true;
}

} // namespace shmemctl::buffers
