// Atomics by message on one PE: the shared receive queues of its devices, a thread that executes
// the messages of peers, and the memory of its own requests.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "src/base/file_descriptor.h"
#include "transports/ibrc/am_memory.h"
#include "transports/ibrc/am_responder.h"
#include "transports/transport.h"

namespace shmemctl::ibrc {

/// What all PEs know of each other's room for messages.
struct MessageRoom {
  std::uint32_t own_credits = 0;      ///< of each sender here
  std::vector<std::uint32_t> credits; ///< of this PE's QP sets, by target; 0: not connected
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
  std::mutex mutex_; ///< of the replies and the receives
  std::optional<Error> failure_;
  std::atomic<bool> stop_{false};
  FileDescriptor wakeup_;
  std::thread thread_;
};

} // namespace shmemctl::ibrc
