// Atomics by message on one PE: the shared receive queues of its devices, a thread that executes
// the messages of peers, and the memory of this PE's requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/file_descriptor.h"
#include "transports/ibrc/am_format.h"
#include "transports/ibrc/am_responder.h"
#include "transports/ibrc/job_view.h"
#include "transports/rc/pages.h"
#include "transports/transport.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

/// This PE's memory for its requests and their replies: a ReplyBlock for each QP set and target. It
/// is registered with every device.
class MessageMemory {
public:
  /// Throws Error (unavailable).
  /// @param credits by PE; 0 for a PE that is not connected
  MessageMemory(const JobView& job, const std::vector<std::uint32_t>& credits, int qp_sets);

  ReplyBlock layout(int pe) const { return {targets_[static_cast<std::size_t>(pe)].credits}; }
  std::byte* block(int pe, std::size_t qp_set) const {
    return pages_.data() + targets_[static_cast<std::size_t>(pe)].begin +
           qp_set * layout(pe).size_bytes();
  }
  std::uint32_t local_key(std::size_t device) const { return handles_[device]->lkey; }
  /// The address to which that PE writes its replies.
  ReplyAddress place_for(int pe) const;

private:
  struct Target {
    std::uint32_t credits = 0;
    std::size_t begin = 0; ///< offset of its blocks in the pages
  };

  const JobView& job_;
  std::vector<Target> targets_; ///< by PE
  rc::Pages pages_;
  std::vector<verbs::MemoryRegion> handles_; ///< by device; destroyed before the pages
};

/// The room for messages on this PE and its peers.
struct MessageRoom {
  std::uint32_t own_credits = 0;      ///< credits of each QP set of a sender at this PE
  std::vector<std::uint32_t> credits; ///< credits of each QP set of this PE, by target PE; 0 for a
                                      ///< PE that is not connected
  int qp_sets = 1;
};

/// Created before the QPs, and destroyed after the QPs of the QP sets. A thread of its own executes
/// messages, and sleeps while none arrive. Threads that wait for something else call serve() to
/// help.
class MessageService {
public:
  /// Posts a receive for each message that all QP sets of all PEs may have in flight. Throws Error
  /// (unavailable).
  MessageService(JobView& job, const MessageRoom& room);
  MessageService(const MessageService&) = delete;
  MessageService& operator=(const MessageService&) = delete;
  ~MessageService();

  /// For use while connecting.
  AmResponder& responder() { return responder_; }
  /// Collective: exchanges the addresses of replies, and starts serving. Throws Error.
  void start(Exchange& exchange);

  /// Allows peers' atomics on a region. Ignored for a region number beyond the table.
  void set_region(const RegionView& region) {
    if (static_cast<std::size_t>(region.region) < RegionTable::capacity)
      regions_.set(region);
  }
  const MessageMemory& memory() const { return memory_; }
  /// Executes arrived messages, unless another thread is doing so. Returns whether there were any.
  /// Throws Error (unavailable) if this PE can no longer serve.
  bool serve();

private:
  bool serve_locked();
  void run();
  /// Sleeps until a message arrives, the destructor wakes the thread, or a time limit has passed.
  void sleep();

  JobView& job_;
  RegionTable regions_;
  MessageMemory memory_;
  AmResponder responder_;
  std::mutex mutex_; ///< guards the replies and the receives
  std::optional<Error> failure_;
  std::atomic<bool> stop_{false};
  FileDescriptor wakeup_;
  std::thread thread_;
};

} // namespace shmemctl::ibrc
