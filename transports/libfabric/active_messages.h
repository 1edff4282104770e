// The target's side of active messages: executes the peers' staged atomics and signals.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "transports/libfabric/memory.h"
#include "transports/libfabric/wire.h"

namespace shmemctl::fabric {

/// The target's side of one endpoint. Called only by the thread that polls the endpoint.
class Target {
public:
  Target(const MemoryMap& memory, int pe, const ImmediateSpace& immediates)
      : memory_(memory), pe_(pe), immediates_(immediates) {}

  /// Executes a request and returns its reply. If the request is a signal whose payload has not
  /// arrived yet, keeps it and returns nothing.
  std::optional<Message> on_request(const Message& request);
  /// Counts an arrived payload. If it was the last one that a signal waits for, executes the signal
  /// and returns its reply.
  std::optional<Message> on_payload(std::uint64_t immediate_data);
  /// The PE to which a reply is sent.
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
