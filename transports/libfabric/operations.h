// Operations in flight: a bounded number of operations for each endpoint, each with a small
// registered payload, and larger registered buffers for local memory that is not registered.
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

/// The operations in flight of a context of the transport.
struct alignas(64) ContextState {
  std::atomic<std::uint64_t> pending{0}; ///< number of operations
  /// Number of atomics among them, which later puts may overtake.
  std::atomic<std::uint64_t> pending_atomics{0};
  /// A bit for each endpoint used since the last quiet(). Polling threads do not access it.
  std::uint32_t endpoints = 0;
};

enum class OperationKind : std::uint8_t { write, read, atomic, request, receive, reply };

enum class OperationState : std::uint32_t { idle, in_flight, done, failed, abandoned };

/// An operation in flight. The provider gets the address of its first member as the context.
struct alignas(64) Operation {
  static constexpr std::size_t payload_bytes = 192;

  fi_context2 provider_context{}; ///< first member: providers write here (FI_CONTEXT2)
  /// Orders the members: they are set before the operation is posted, and read when it is complete.
  std::atomic<OperationState> state{OperationState::idle};
  OperationKind kind = OperationKind::write;
  bool waited = false;     ///< whether a thread waits for this operation and frees it
  bool is_atomic = false;  ///< whether it is counted in pending_atomics
  std::uint8_t events = 1; ///< number of events until the operation is complete
  int pe = -1;             ///< the peer
  std::uint32_t index = 0; ///< index in its pool
  std::uint32_t generation = 0;
  ContextState* context = nullptr;
  std::size_t size_bytes = 0;
  std::byte* bounce = nullptr;  ///< buffer to free at completion
  void* copy_to = nullptr;      ///< destination of a read that arrives in `bounce` or the payload
  std::byte* payload = nullptr; ///< payload_bytes of registered memory
  /// For requests only: the old value from the reply, and whether the target refused the request.
  std::uint64_t answer = 0;
  bool refused = false;
};

/// Thread safe. The memory is registered only if the provider or its profile requires that.
class OperationPool {
public:
  /// Throws Error if the memory cannot be registered.
  explicit OperationPool(const Endpoint& endpoint);

  /// Takes a free operation; nullptr if no more than `reserve` are free.
  /// @param reserve number of operations that are reserved for callers that must not wait
  Operation* take(OperationKind kind, std::size_t reserve = 0);
  void give(Operation& operation);
  /// Takes a free buffer; nullptr if none is free.
  std::byte* take_bounce();
  void give_bounce(std::byte* bounce);

  std::size_t bounce_bytes() const { return bounce_bytes_; }
  void* descriptor() const { return registration_.descriptor(); }
  /// The operation of an index; nullptr if there is none.
  Operation* at(std::uint32_t index) {
    return index < operations_.size() ? &operations_[index] : nullptr;
  }
  /// The peer of an operation of this context that is in flight; -1 if there is none.
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
