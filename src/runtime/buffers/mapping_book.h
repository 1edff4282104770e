// Which buffers of other PEs' GPUs this process has mapped now.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "src/base/deadline.h"
#include "src/memory/buffers/buffer_pool.h"

namespace shmemctl::buffers {

/// A mapping that somebody still uses outlives the entry of the cache; here it is counted until it
/// is really gone, which an owner has to know before it frees the memory. Thread safe.
class MappingBook {
public:
  /// Counts one mapping while it lives: to be declared before the mapping.
  class Entry {
  public:
    Entry(std::shared_ptr<MappingBook> book, int owner_pe, const BufferHandle& handle);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

  private:
    std::shared_ptr<MappingBook> book_;
    std::pair<int, std::uint64_t> key_;
  };

  /// False if the deadline passed and there still is one.
  bool wait_until_gone(int owner_pe, const BufferHandle& handle, const Deadline& deadline);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, std::uint64_t>, int> counts_; ///< by owner and generation
};

} // namespace shmemctl::buffers
