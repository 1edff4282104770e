// Atomics by message, as one PE takes part: the shared receive queues of its devices, a thread that
// carries out what peers ask for, and the memory of its own requests.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "src/base/file_descriptor.h"
#include "transports/ibrc/answers.h"
#include "transports/ibrc/message_memory.h"
#include "transports/transport.h"

namespace shmemctl::ibrc {

/// What all PEs know of each other's room for messages.
struct MessageRoom {
  std::uint32_t own_credits = 0;      ///< of each sender here
  std::vector<std::uint32_t> credits; ///< of this PE's lanes, by target; 0: not connected
  int lanes = 1;
};

/// Made before the queue pairs, destroyed after those of the lanes. Messages are carried out by a
/// thread that sleeps while none comes, and by who waits for something anyway: serve().
class MessageService {
public:
  /// Posts the receives: as many as all lanes of all PEs may send. Throws Error (unavailable).
  MessageService(JobView& job, const MessageRoom& room);
  MessageService(const MessageService&) = delete;
  MessageService& operator=(const MessageService&) = delete;
  ~MessageService();

  /// While connecting.
  Answers& answers() { return answers_; }
  /// Collective: tells all PEs where their answers go, and begins to serve. Throws Error.
  void start(Exchange& exchange);

  /// What peers may ask for. Nothing in regions that no peer can name either.
  void set_region(const RegionView& region) {
    if (static_cast<std::size_t>(region.region) < RegionTable::capacity)
      regions_.set(region);
  }
  const MessageMemory& memory() const { return memory_; }
  /// Carries out what has come, if no one else is at it. Returns whether there was something.
  /// Throws Error (unavailable) if this PE cannot serve any more.
  bool serve();

private:
  bool serve_locked();
  void run();
  /// Until a message comes, or somebody wakes it.
  void sleep();

  JobView& job_;
  RegionTable regions_;
  MessageMemory memory_;
  Answers answers_;
  std::mutex mutex_; ///< of the answers and the receives
  std::optional<Error> failure_;
  std::atomic<bool> stop_{false};
  FileDescriptor wakeup_;
  std::thread thread_;
};

} // namespace shmemctl::ibrc
