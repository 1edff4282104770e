#include "src/instruments/bench/cases/pingpong.h"

#include <bit>

#include "src/instruments/bench/cases/case_makers.h"

namespace shmemctl::bench {

namespace {

[[gnu::always_inline]] inline void await_flag(const PingPongEnd& end, std::uint64_t value) {
  end.rma.wait_until(end.flag, Compare::equal, value, "ping-pong", end.peer);
}

struct PutPingPong : PingPongKind {
  /// A put of this size is one store, so that its receiver can wait for the payload itself.
  static bool payload_is_flag(std::size_t size_bytes) {
    return size_bytes <= 8 && std::has_single_bit(size_bytes);
  }
  [[gnu::always_inline]] static void send(const PingPongEnd& end, std::uint64_t number) {
    const std::uint64_t value = number + 1;
    if (end.payload_is_flag)
      return end.rma.put(end.flag, &value, end.size_bytes, end.peer);
    end.rma.put(end.slot, source_of(end, number), end.size_bytes, end.peer, 0, false);
    end.rma.fence();
    end.rma.put(end.flag, &value, sizeof value, end.peer);
  }
  [[gnu::always_inline]] static void await(const PingPongEnd& end, std::uint64_t number) {
    await_flag(end, (number + 1) & end.flag_mask);
  }
};

struct PutSignalPingPong : PingPongKind {
  [[gnu::always_inline]] static void send(const PingPongEnd& end, std::uint64_t number) {
    end.rma.put_signal(end.slot, source_of(end, number), end.size_bytes, end.flag, number + 1,
                       SignalOp::set, end.peer, 0, false);
  }
  [[gnu::always_inline]] static void await(const PingPongEnd& end, std::uint64_t number) {
    await_flag(end, number + 1);
  }
};

struct SignalPingPong : PingPongKind {
  static bool has_payload(std::size_t) { return false; }
  [[gnu::always_inline]] static void send(const PingPongEnd& end, std::uint64_t number) {
    end.rma.put_signal(nullptr, nullptr, 0, end.flag, number + 1, SignalOp::set, end.peer);
  }
  [[gnu::always_inline]] static void await(const PingPongEnd& end, std::uint64_t number) {
    await_flag(end, number + 1);
  }
};

/// Loads and stores without the runtime, which only limits the time of waits.
struct CacheLinePingPong : PingPongKind {
  static constexpr bool direct = true;
  static bool has_payload(std::size_t) { return false; }
  [[gnu::always_inline]] static void send(const PingPongEnd& end, std::uint64_t number) {
    std::atomic_ref(*end.peers_flag).store(number + 1, std::memory_order_release);
  }
  [[gnu::always_inline]] static void await(const PingPongEnd& end, std::uint64_t number) {
    constexpr int spins = 10000;
    for (int spin = 0; spin < spins; ++spin)
      if (std::atomic_ref(*end.flag).load(std::memory_order_acquire) == number + 1)
        return;
    await_flag(end, number + 1);
  }
};

} // namespace

SHMEMCTL_CASE(put_pingpong_by_host, PingPong<PutPingPong>);
SHMEMCTL_CASE(put_signal_pingpong_by_host, PingPong<PutSignalPingPong>);
SHMEMCTL_CASE(signal_pingpong_by_host, PingPong<SignalPingPong>);
SHMEMCTL_CASE(cacheline_pingpong_by_host, PingPong<CacheLinePingPong>);

} // namespace shmemctl::bench
