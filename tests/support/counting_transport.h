// A transport that only counts what it is asked for.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/support/no_transport.h"

namespace shmemctl::test {

/// `last` is the offset of the latest put plus one: a thread that waits for it sees when a request
/// arrives.
class CountingTransport final : public NoTransport {
public:
  alignas(128) std::atomic<std::uint64_t> last{0};
  alignas(128) std::uint64_t calls = 0; ///< calls of the proxy thread

  const char* name() const override { return "counting"; }
  void put(int, const RemoteAddress& target, const void*, std::size_t, bool) override {
    ++calls;
    last.store(target.offset_bytes + 1, std::memory_order_release);
  }
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override { ++calls; }
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override { return ++calls; }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override {
    ++calls;
  }
};

} // namespace shmemctl::test
