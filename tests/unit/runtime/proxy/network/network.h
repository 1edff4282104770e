// What the proxy has to do over every transport. A test is a function of the PE; PEs are processes
// with a whole runtime, or threads over devices in software.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "src/runtime/proxy/proxy.h"
#include "tests/support/fork_job.h"

namespace shmemctl::test {

/// What each PE receives.
struct ProxyPe {
  int pe = 0, n_pes = 1;
  Proxy* proxy = nullptr;
  std::byte* heap = nullptr; ///< zeroed; 64-aligned
  std::function<RemoteAddress(int pe, std::size_t offset_bytes)> at;
  std::function<void()> barrier; ///< completes nothing
  /// Waits until the 64-bit word of this PE's heap has that value.
  std::function<void(std::size_t offset_bytes, std::uint64_t value, int from)> wait_word;
};
using ProxyBody = std::function<void(ProxyPe&)>;
inline constexpr std::size_t proxy_heap_bytes = std::size_t{4} << 20;

/// A network for the proxy's requests.
struct Network {
  std::string name; ///< part of the tests' names: "libfabric_tcp"
  Environment environment = {};
  unsigned threads = 1;  ///< threads of each proxy
  bool one_node = false; ///< PEs are on one node; else each on its own
  bool processes = true; ///< PEs are processes, which can be killed
  /// PEs are threads over devices in software: runs the body; returns why it cannot.
  std::function<std::string(int n_pes, unsigned threads, const ProxyBody& body)> run_in_threads =
      {};
};
inline void PrintTo(const Network& network, std::ostream* out) {
  *out << network.name;
}
inline std::string by_network(const testing::TestParamInfo<Network>& info) {
  return info.param.name + "_" + std::to_string(info.param.threads) +
         (info.param.threads == 1 ? "_thread" : "_threads");
}

inline void require(bool condition, const std::string& what) {
  if (!condition)
    throw Error(ExitCode::finding, what, "compare", "it is not true", "-");
}

class ProxyNetwork : public testing::TestWithParam<Network> {
protected:
  /// Runs `body` on every PE. Skips the test, with the reason, where the transport cannot be used.
  void run(int n_pes, const ProxyBody& body);
  /// Runs PEs that are processes; what each reported, or nothing if the transport cannot be used.
  std::vector<PeResult> run_processes(int n_pes, const ProxyBody& body);

private:
  void skip(const std::string& reason) { GTEST_SKIP() << reason; }
};

/// Bytes that encode their offset, their writer and their round.
inline void fill(void* memory, std::size_t size_bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < size_bytes; ++at)
    static_cast<std::byte*>(memory)[at] = static_cast<std::byte>(at * 7 + at / 251 + seed * 31 + 1);
}
inline void require_filled(const void* memory, std::size_t size_bytes, std::uint64_t seed,
                           const std::string& what) {
  std::vector<std::byte> expected(size_bytes);
  fill(expected.data(), size_bytes, seed);
  require(size_bytes == 0 || std::memcmp(memory, expected.data(), size_bytes) == 0,
          what + " of " + std::to_string(size_bytes) + " bytes, seed " + std::to_string(seed));
}

/// Calls body(number) in threads; rethrows the first exception.
void in_threads(int count, const std::function<void(int)>& body);

} // namespace shmemctl::test
