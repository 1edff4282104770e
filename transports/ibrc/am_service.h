// Atomics by message on one PE: the shared receive queues of its devices, a thread that executes
// the messages of peers, and the memory of its own requests.
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

/// This PE's memory for its messages and their replies: one block per QP set and target, registered
/// with every device.
class MessageMemory {
public:
  /// @param credits by PE; 0 for one that is not connected
  /// Throws Error (unavailable).
  MessageMemory(const JobView& job, const std::vector<std::uint32_t>& credits, int qp_sets);

  ReplyBlock layout(int pe) const { return {targets_[static_cast<std::size_t>(pe)].credits}; }
  std::byte* block(int pe, std::size_t qp_set) const {
    return pages_.data() + targets_[static_cast<std::size_t>(pe)].begin +
           qp_set * layout(pe).size_bytes();
  }
  std::uint32_t local_key(std::size_t device) const { return handles_[device]->lkey; }
  /// What that PE needs in order to reply.
  ReplyAddress place_for(int pe) const;

private:
  struct Target {
    std::uint32_t credits = 0;
    std::size_t begin = 0; ///< in the pages
  };

  const JobView& job_;
  std::vector<Target> targets_; ///< by PE
  rc::Pages pages_;
  std::vector<verbs::MemoryRegion> handles_; ///< by device; destroyed before the pages
};

/// What all PEs know of each other's room for messages.
struct MessageRoom {
  std::uint32_t own_credits = 0;      ///< credits of each sender here
  std::vector<std::uint32_t> credits; ///< credits of this PE's QP sets, by target; 0: not connected
  int qp_sets = 1;
};

/// Created before the QPs, destroyed after those of the QP sets. Messages are executed by a thread
/// that sleeps while none arrives, and by threads that wait for something anyway: serve().
class MessageService {
public:
  /// Posts as many receives as all QP sets of all PEs may send. Throws Error (unavailable).
  MessageService(JobView& job, const MessageRoom& room);
  MessageService(const MessageService&) = delete;
  MessageService& operator=(const MessageService&) = delete;
  ~MessageService();

  /// While connecting.
  AmResponder& responder() { return responder_; }
  /// Collective: exchanges the addresses of replies, and starts serving. Throws Error.
  void start(Exchange& exchange);

  /// Memory that peers may access. Regions without keys are excluded.
  void set_region(const RegionView& region) {
    if (static_cast<std::size_t>(region.region) < RegionTable::capacity)
      regions_.set(region);
  }
  const MessageMemory& memory() const { return memory_; }
  /// Executes arrived messages, unless another thread does. Returns whether there were any. Throws
  /// Error (unavailable) if this PE cannot serve any longer.
  bool serve();

private:
  bool serve_locked();
  void run();
  /// Sleeps until a message arrives, or it is woken.
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
