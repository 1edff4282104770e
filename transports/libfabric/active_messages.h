// What this PE does for its peers: executes their staged atomic operations and their signals.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "transports/libfabric/memory.h"
#include "transports/libfabric/wire.h"

namespace shmemctl::fabric {

/// The target's side of one endpoint; called only by the thread that polls it.
class Target {
public:
  Target(const MemoryMap& memory, int pe, const ImmediateSpace& immediates)
      : memory_(memory), pe_(pe), immediates_(immediates) {}

  /// Handles a request. Returns its reply, unless its payload has not arrived yet.
  std::optional<Message> on_request(const Message& request);
  /// A payload has arrived. Returns the reply of the signal that waited for it, if any.
  std::optional<Message> on_payload(std::uint64_t immediate_data);
  /// Destination of the reply.
  static int receiver(const Message& reply) { return static_cast<int>(reply.region); }

private:
  struct Counted {
    std::uint32_t arrived = 0;
    std::optional<Message> signal;
  };
  Message execute(const Message& request) const;
  std::optional<Message> finish_if_all(std::pair<int, std::uint32_t> key);

  const MemoryMap& memory_;
  int pe_;
  const ImmediateSpace& immediates_;
  std::map<std::pair<int, std::uint32_t>, Counted> counted_; ///< by sender and sequence
};

} // namespace shmemctl::fabric
