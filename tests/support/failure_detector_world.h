// FailureDetectors of all PEs of a job in one process, and the waits that their tests need.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/runtime/failure_detector_tree.h"
#include "tests/support/thread_bootstrap.h"

namespace shmemctl::test {

inline constexpr failure_detector::Secret job_secret = {1, 2,  3,  4,  5,  6,  7,  8,
                                                        9, 10, 11, 12, 13, 14, 15, 16};

inline Deadline in_seconds(double span_s) {
  return Deadline::after(std::chrono::duration<double>(span_s));
}

/// Looks every millisecond; false if it did not come true in time.
inline bool eventually(const std::function<bool()>& condition, double limit_s = 60) {
  const Deadline deadline = in_seconds(limit_s);
  while (!condition()) {
    if (deadline.passed())
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Host a for even PEs, host b for odd ones.
inline std::vector<std::string> two_hosts(int n_pes) {
  std::vector<std::string> hosts;
  for (int pe = 0; pe < n_pes; ++pe)
    hosts.emplace_back(pe % 2 == 0 ? "a" : "b");
  return hosts;
}

inline std::vector<SocketAddress> loopback() {
  return {SocketAddress::parse("127.0.0.1:0")};
}

using FailureDetectors = std::vector<std::unique_ptr<failure_detector::TreeFailureDetector>>;

/// @param printer_of by PE: how it prints the job's failure; empty: PEs print by themselves
inline FailureDetectors
make_failure_detectors(int n_pes, bool over_tcp = false,
                       const std::function<ErrorPrinter(int pe)>& printer_of = {}) {
  FailureDetectors made(static_cast<std::size_t>(n_pes));
  failure_detector::Settings settings;
  settings.always_tcp = over_tcp;
  run_bootstrap_threads(n_pes, [&](Bootstrap& bootstrap) {
    failure_detector::Settings mine = settings;
    if (printer_of)
      mine.printer = printer_of(bootstrap.rank());
    made[static_cast<std::size_t>(bootstrap.rank())] = failure_detector::start(
        bootstrap, job_secret, over_tcp ? loopback() : std::vector<SocketAddress>{},
        two_hosts(n_pes), mine, in_seconds(60));
  });
  return made;
}

/// What check() throws; nothing if it throws nothing.
inline std::optional<Error> health_of(const JobHealth& health) {
  try {
    health.check();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Waits until check() throws.
inline std::optional<Error> failure_of(const JobHealth& health) {
  std::optional<Error> error;
  eventually([&] {
    error = health_of(health);
    return error.has_value();
  });
  return error;
}

} // namespace shmemctl::test
