// What every transport must do. A transport takes part by a file of its own,
// <name>_conformance_test.cpp, with
//   INSTANTIATE_TEST_SUITE_P(Ibrc, Conformance, testing::Values(NamedTransport{...}), by_name);
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/transport_world.h"

namespace shmemctl::test {

/// A transport as the suite runs it, and its known properties.
struct NamedTransport {
  std::string name; ///< part of the tests' names: "libfabric_tcp_efa"
  MakeTransport make;
  std::map<std::string, std::string> options = {}; ///< by option name, like flags
  std::vector<HcaPort> nics = {};                  ///< for use_nics()
  /// It loads and stores: the PEs share their memory, and no connection can break.
  bool mapped_memory = false;
  /// A device serves a peer whose process is stopped.
  bool served_by_device = false;
};

inline std::string by_name(const testing::TestParamInfo<NamedTransport>& info) {
  return info.param.name;
}

/// A world of PEs that are threads; each test is a function of the PE.
class Conformance : public testing::TestWithParam<NamedTransport> {
protected:
  TransportWorldOptions world(int n_pes) const {
    TransportWorldOptions wanted;
    wanted.n_pes = n_pes;
    wanted.options = GetParam().options;
    wanted.nics = GetParam().nics;
    wanted.mapped_memory = GetParam().mapped_memory;
    return wanted;
  }
  /// Skips the test, with the transport's reason, where it cannot be used.
  void run(const TransportWorldOptions& wanted, const std::function<void(TransportPe&)>& body) {
    const std::string reason = run_transport_world(GetParam().make, body, wanted);
    if (!reason.empty())
      GTEST_SKIP() << reason;
  }
  void run(int n_pes, const std::function<void(TransportPe&)>& body) { run(world(n_pes), body); }
};

inline RemoteAddress heap_of(int pe, std::uint64_t offset_bytes) {
  return {pe, region::heap, offset_bytes};
}

/// Bytes that encode their offset, their writer and their round.
inline std::byte pattern(std::size_t at, unsigned seed) {
  return static_cast<std::byte>((at * 7 + at / 251 + seed * 31 + 1) & 0xff);
}
inline void fill(void* memory, std::size_t size_bytes, unsigned seed) {
  for (std::size_t at = 0; at < size_bytes; ++at)
    static_cast<std::byte*>(memory)[at] = pattern(at, seed);
}
/// The first offset that differs from the pattern; size_bytes if none does.
inline std::size_t first_difference(const void* memory, std::size_t size_bytes, unsigned seed) {
  for (std::size_t at = 0; at < size_bytes; ++at)
    if (static_cast<const std::byte*>(memory)[at] != pattern(at, seed))
      return at;
  return size_bytes;
}
inline bool all_are(const std::byte* memory, std::size_t size_bytes, std::byte value) {
  for (std::size_t at = 0; at < size_bytes; ++at)
    if (memory[at] != value)
      return false;
  return true;
}

/// The word in this PE's heap, read as a waiting thread reads it.
inline std::uint64_t word_at(const TransportPe& me, std::size_t offset_bytes) {
  auto* word = reinterpret_cast<std::uint64_t*>(me.heap + offset_bytes);
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

/// Waits as the runtime does, with progress. Throws when another PE fails or at the deadline.
template <class Condition>
void wait_for(const TransportPe& me, Condition&& condition, const char* what) {
  const Deadline deadline = me.deadline();
  for (int turn = 1; !condition(); ++turn) {
    me.transport->progress();
    if (turn % 64 != 0)
      continue;
    me.health->check();
    if (deadline.passed())
      throw std::runtime_error("PE " + std::to_string(me.pe) + " waits in vain: " + what);
    std::this_thread::yield();
  }
}
inline void wait_word(const TransportPe& me, std::size_t offset_bytes, std::uint64_t value,
                      const char* what) {
  wait_for(
      me, [&] { return word_at(me, offset_bytes) == value; }, what);
}

/// Sizes around the limits that transports have: nothing, words, inline and inject sizes, buffers,
/// several packets.
inline const std::vector<std::size_t>& payload_sizes() {
  static const std::vector<std::size_t> sizes = {
      0, 1, 3, 4, 8, 17, 64, 129, 1000, 4095, 4096, 16385, 65536, (1 << 20) + 7};
  return sizes;
}

} // namespace shmemctl::test
