#include "transports/libfabric/operations.h"

#include <cstdlib>
#include <new>

#include "src/base/round_up.h"

namespace shmemctl::fabric {

namespace {

std::size_t memory_bytes(const Profile& profile) {
  return (profile.operations + profile.receives) * Operation::payload_bytes +
         profile.bounce_buffers * profile.bounce_bytes;
}

std::byte* page_aligned(std::size_t size_bytes) {
  constexpr std::size_t page_bytes = 4096;
  void* memory =
      std::aligned_alloc(page_bytes, (size_bytes + page_bytes - 1) / page_bytes * page_bytes);
  if (!memory)
    throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

} // namespace

OperationPool::OperationPool(const Endpoint& endpoint)
    : bounce_bytes_(endpoint.profile().bounce_bytes),
      memory_(page_aligned(memory_bytes(endpoint.profile())), std::free),
      operations_(endpoint.profile().operations + endpoint.profile().receives) {
  const Profile& profile = endpoint.profile();
  if (endpoint.promises().local_registration)
    registration_ = Registration(endpoint, memory_.get(), memory_bytes(profile));
  std::byte* at = memory_.get();
  for (std::size_t i = 0; i < profile.bounce_buffers; ++i, at += profile.bounce_bytes)
    free_bounces_.push_back(at);
  for (std::size_t i = 0; i < operations_.size(); ++i, at += Operation::payload_bytes) {
    operations_[i].index = static_cast<std::uint32_t>(i);
    operations_[i].payload = at;
    free_.push_back(&operations_[i]);
  }
}

Operation* OperationPool::take(OperationKind kind, std::size_t reserve) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.size() <= reserve)
      return nullptr;
    operation = free_.back();
    free_.pop_back();
  }
  operation->kind = kind;
  operation->waited = operation->is_atomic = operation->refused = false;
  operation->events = 1;
  operation->pe = -1;
  ++operation->generation;
  operation->context = nullptr;
  operation->size_bytes = 0;
  operation->bounce = nullptr;
  operation->copy_to = nullptr;
  return operation;
}

void OperationPool::give(Operation& operation) {
  operation.state.store(OperationState::idle, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  if (operation.bounce)
    free_bounces_.push_back(operation.bounce);
  operation.bounce = nullptr;
  free_.push_back(&operation);
}

std::byte* OperationPool::take_bounce() {
  const std::lock_guard lock(mutex_);
  if (free_bounces_.empty())
    return nullptr;
  std::byte* bounce = free_bounces_.back();
  free_bounces_.pop_back();
  return bounce;
}

void OperationPool::give_bounce(std::byte* bounce) {
  const std::lock_guard lock(mutex_);
  free_bounces_.push_back(bounce);
}

int OperationPool::peer_of(const ContextState* context) const {
  const std::lock_guard lock(mutex_); // prevents that operations are taken meanwhile
  for (const Operation& operation : operations_)
    if (operation.state.load(std::memory_order_acquire) == OperationState::in_flight &&
        operation.context == context)
      return operation.pe;
  return -1;
}

} // namespace shmemctl::fabric
