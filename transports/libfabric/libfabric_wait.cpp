// Waiting, polling, and the thread that serves peers while the program does neither.
#include <algorithm>

#include "transports/libfabric/libfabric_transport.h"

namespace shmemctl::fabric {

namespace {

/// Contexts that are kept for answers to peers.
constexpr std::size_t kept_for_answers = 64;

} // namespace

Operation& LibfabricTransport::take(const Way& way, OperationKind kind, int pe) {
  Operation* operation = way.rail.pool().take(kind, kept_for_answers);
  if (!operation)
    wait(
        [&] {
          operation = way.rail.pool().take(kind, kept_for_answers);
          return operation != nullptr;
        },
        way.step, [&] { return pe; });
  operation->pe = pe;
  return *operation;
}

std::byte* LibfabricTransport::take_bounce(const Way& way, int pe) {
  std::byte* bounce = nullptr;
  wait(
      [&] {
        bounce = way.rail.pool().take_bounce();
        return bounce != nullptr;
      },
      way.step, [&] { return pe; });
  return bounce;
}

void LibfabricTransport::check_peer(int pe) {
  if (!failures_.has(pe))
    return;
  const Error error = *failures_.of(pe);
  setup_.health->await_cause(pe);
  throw error;
}

void LibfabricTransport::probe(int pe) {
  if (pe < 0 || pe == setup_.pe)
    return;
  for (const auto& rail : rails_)
    if (!failures_.has(pe) && rail->endpoint().refuses(rail->peer(pe).address))
      failures_.add(pe, nullptr, rail->failure("reach", pe, "nobody listens there any more"));
  check_peer(pe);
}

void LibfabricTransport::wait_operation(const Way& way, Operation& operation) {
  const auto state = [&] { return operation.state.load(std::memory_order_acquire); };
  const int pe = operation.pe;
  try {
    wait([&] { return state() != OperationState::in_flight; }, way.step, [&] { return pe; });
  } catch (...) {
    // Whoever takes its completion gives it back; if it has come by now, it is ours to give.
    if (operation.state.exchange(OperationState::abandoned, std::memory_order_acq_rel) !=
        OperationState::in_flight)
      way.rail.pool().give(operation);
    throw;
  }
  if (state() == OperationState::done)
    return;
  way.rail.pool().give(operation);
  failures_.take_peer_of(&way.state);
  check_peer(pe);
}

void LibfabricTransport::wait_pending(int context, bool atomics_only, const char* step) {
  ContextState& state = state_of(context);
  const auto& pending = atomics_only ? state.pending_atomics : state.pending;
  const auto peer = [&] {
    int found = -1;
    for (const auto& rail : rails_)
      found = found < 0 ? rail->pool().peer_of(&state) : found;
    return found;
  };
  wait([&] { return pending.load(std::memory_order_acquire) == 0; }, step, peer);
  if (!failures_.any())
    return;
  if (const int failed = failures_.take_peer_of(&state); failed >= 0)
    check_peer(failed);
}

void LibfabricTransport::fence(int context) {
  ContextState& state = state_of(context);
  if (state.pending.load(std::memory_order_acquire) == 0)
    return;
  const std::uint32_t used = state.endpoints;
  const bool one_endpoint = (used & (used - 1)) == 0;
  // Atomic operations are made by the target's processor, so later puts may come before them.
  wait_pending(context, one_endpoint && provider_.profile.in_order, "fence");
}

void LibfabricTransport::quiet(int context) {
  wait_pending(context, false, "quiet");
  state_of(context).endpoints = 0;
}

bool LibfabricTransport::poll_all() {
  bool busy = false;
  for (const auto& rail : rails_)
    busy = rail->poll() || busy;
  return busy;
}

void LibfabricTransport::progress() {
  program_polls_.fetch_add(1, std::memory_order_relaxed);
  poll_all();
}

void LibfabricTransport::serve() {
  constexpr std::uint64_t polls_of_a_busy_program = 32;
  constexpr int idle_before_sleep = 1000;
  const auto shortest = std::chrono::microseconds(20), longest = std::chrono::microseconds(500);
  // Each of these looks costs a program that polls its core for a while, and it needs none.
  const auto first_doze = std::chrono::microseconds(100),
             longest_doze = std::chrono::microseconds(1000);
  auto sleep = shortest, doze = first_doze;
  std::uint64_t seen = 0;
  int idle = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    const std::uint64_t polls = program_polls_.load(std::memory_order_relaxed);
    const bool program_polls = polls - seen > polls_of_a_busy_program ||
                               program_waits_.load(std::memory_order_relaxed) > 0;
    seen = polls;
    if (program_polls) {
      std::this_thread::sleep_for(doze);
      doze = std::min(doze * 2, longest_doze);
      continue;
    }
    doze = first_doze;
    for (int turn = 0; turn < 32 && idle < idle_before_sleep; ++turn) {
      idle = poll_all() ? 0 : idle + 1;
      std::this_thread::yield();
    }
    if (idle < idle_before_sleep) {
      sleep = shortest;
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(sleep * 2, longest);
    idle = poll_all() ? 0 : idle;
  }
}

void LibfabricTransport::stop_serving() {
  stop_.store(true, std::memory_order_release);
  if (service_.joinable())
    service_.join();
  // A peer's last quiet may wait for an answer that was left for the next poll.
  const Deadline patience = Deadline::after(std::chrono::milliseconds(100));
  for (const auto& rail : rails_)
    while (rail->owes_answers() && !patience.passed())
      rail->poll();
}

} // namespace shmemctl::fabric
