// Data and a word that announces it, from PE 0 to PE 1: a thread that sees the word checks every
// byte of the data.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/support/transport_world.h"

namespace shmemctl::test {

struct OrderLitmus {
  std::size_t size_bytes = 65536;
  std::uint64_t rounds = 100;
  bool until_found = false; ///< the first message whose data came late ends it

  // In the heap of each PE.
  static constexpr std::uint64_t flag_at = 64, answer_at = 128, data_at = 4096;
  static constexpr std::uint64_t source_at = std::uint64_t{2} << 20;
};

namespace detail {

inline std::uint64_t seen_word(const TransportPe& me, std::uint64_t at) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(me.heap + at))
      .load(std::memory_order_acquire);
}

template <class Ready>
void await(const TransportPe& me, const Ready& ready, const char* what) {
  const Deadline deadline = me.deadline();
  for (std::uint64_t turn = 1; !ready(); ++turn) {
    if (turn % 64 != 0)
      continue;
    me.transport->progress();
    me.health->check();
    if (deadline.passed())
      throw std::runtime_error("PE " + std::to_string(me.pe) + " waits in vain for " + what +
                               " of PE " + std::to_string(1 - me.pe));
    std::this_thread::yield();
  }
}

} // namespace detail

/// How many messages came late, as both PEs know.
/// @param send  sends `source` to data_at and the round's number to flag_at, in this order
/// @param quiet all that was sent is complete
inline std::uint64_t
late_messages(TransportPe& me, const OrderLitmus& litmus,
              const std::function<void(std::uint64_t round, const std::byte* source)>& send,
              const std::function<void()>& quiet) {
  using detail::await;
  using detail::seen_word;
  std::uint64_t late = 0;
  const std::uint64_t before =
      seen_word(me, me.pe == 0 ? OrderLitmus::answer_at : OrderLitmus::flag_at);
  const std::uint64_t first = me.pe == 0 ? before >> 32 : before;
  me.barrier(); // no message is sent before both PEs have read where they begin
  for (std::uint64_t round = first + 1; round <= first + litmus.rounds; ++round) {
    const auto value = static_cast<unsigned char>(round % 251 + 1);
    if (me.pe == 0) {
      std::memset(me.heap + OrderLitmus::source_at, value, litmus.size_bytes);
      send(round, me.heap + OrderLitmus::source_at);
      await(
          me, [&] { return seen_word(me, OrderLitmus::answer_at) >> 32 == round; }, "the answer");
      late = seen_word(me, OrderLitmus::answer_at) & 0xffffffff;
      quiet();
    } else {
      await(
          me, [&] { return seen_word(me, OrderLitmus::flag_at) == round; }, "the flag");
      bool whole = true;
      for (std::size_t at = 0; at < litmus.size_bytes; ++at)
        whole = whole && std::atomic_ref(
                             reinterpret_cast<unsigned char&>(me.heap[OrderLitmus::data_at + at]))
                                 .load(std::memory_order_relaxed) == value;
      late += whole ? 0 : 1;
      const std::uint64_t answer = round << 32 | late;
      me.transport->put(1, {0, region::heap, OrderLitmus::answer_at}, &answer, sizeof answer, true);
      me.transport->quiet(1);
    }
    if (litmus.until_found && late > 0)
      break;
  }
  // Both count on from the same number, and no PE sees a word of this run in the next.
  me.barrier();
  return late;
}

} // namespace shmemctl::test
