// Operations in flight: a bounded number of contexts for each endpoint, each with a little
// registered memory; and larger registered buffers for local memory that is not registered.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/abi/device_state.h"
#include "transports/libfabric/endpoint.h"

namespace shmemctl::fabric {

/// What a context of the transport has in flight.
struct alignas(64) ContextState {
  std::atomic<std::uint64_t> pending{0}; ///< operations
  /// Atomics among them, which later puts may overtake.
  std::atomic<std::uint64_t> pending_atomics{0};
  std::uint32_t endpoints = 0; ///< used since the last quiet(): a bit each; the caller's thread
};

enum class OperationKind : std::uint8_t { write, read, atomic, request, receive, reply };

enum class OperationState : std::uint32_t { idle, in_flight, done, failed, abandoned };

/// The provider gets its address as the operation's context.
struct alignas(64) Operation {
  static constexpr std::size_t payload_bytes = 192;

  fi_context2 provider_context{}; ///< first member: providers write here (FI_CONTEXT2)
  /// Set before the operation is posted, read when it has completed: `state` orders them.
  std::atomic<OperationState> state{OperationState::idle};
  OperationKind kind = OperationKind::write;
  bool waited = false;     ///< a thread waits for this operation, and frees it
  bool is_atomic = false;  ///< counted in pending_atomics
  std::uint8_t events = 1; ///< number of completions until the operation is complete
  int pe = -1;             ///< the peer
  std::uint32_t index = 0; ///< in its pool
  std::uint32_t generation = 0;
  ContextState* context = nullptr;
  std::size_t size_bytes = 0;
  std::byte* bounce = nullptr;  ///< freed at completion
  void* copy_to = nullptr;      ///< where a read is copied from `bounce` or the payload
  std::byte* payload = nullptr; ///< payload_bytes of registered memory
  /// Only of requests: written by the reply, and whether the target refused.
  std::uint64_t answer = 0;
  bool refused = false;
};

/// Thread safe. Memory is registered only where the provider wants that.
class OperationPool {
public:
  /// Throws Error if the memory cannot be registered.
  explicit OperationPool(const Endpoint& endpoint);

  /// Null if all are in flight.
  /// @param reserve number that is kept for callers that must not wait
  Operation* take(OperationKind kind, std::size_t reserve = 0);
  void give(Operation& operation);
  /// Null if none is free.
  std::byte* take_bounce();
  void give_bounce(std::byte* bounce);

  std::size_t bounce_bytes() const { return bounce_bytes_; }
  void* descriptor() const { return registration_.descriptor(); }
  /// Null if there is none of that number.
  Operation* at(std::uint32_t index) {
    return index < operations_.size() ? &operations_[index] : nullptr;
  }
  /// A PE that an operation of this context is in flight to; -1 if there is none.
  int peer_of(const ContextState* context) const;

private:
  std::size_t bounce_bytes_;
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
  Registration registration_;
  std::vector<Operation> operations_;
  mutable std::mutex mutex_;
  std::vector<Operation*> free_;
  std::vector<std::byte*> free_bounces_;
};

} // namespace shmemctl::fabric
