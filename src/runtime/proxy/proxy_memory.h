// The memory of one ring, and the places in it where producers get their answers.
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/runtime/proxy/host_atomics.h"
#include "src/runtime/proxy/proxy_drain.h"
#include "src/runtime/proxy/proxy_request.h"
#include "src/topo/cpu_set.h"

namespace shmemctl {

struct ProxyOptions {
  unsigned threads = 1; ///< 1 to most_proxy_threads; each has a ring
  /// By PE: its ring. Empty: PE p has ring p modulo `threads`.
  std::vector<std::uint8_t> ring_of_pe;
  /// By thread: the CPUs that it may use. Empty, of one or of all: those of whoever starts it.
  std::vector<CpuSet> cpus;
  std::size_t capacity = 4096;    ///< requests in a ring; a power of two, 2 to 2^24
  std::uint32_t n_results = 1024; ///< producers that may wait for an answer of a ring at once
  ProxyDrainLimits limits;
  double timeout_s = 60; ///< of every wait, and of a stop
  /// How an idle proxy thread waits: it spins, so often or so long, then yields, then sleeps, 2 µs
  /// first and at most this long: the bound of what a request to a sleeping proxy is late by.
  int idle_spins = 2000, idle_yields = 2000;
  std::chrono::microseconds longest_spin{50}, longest_nap{50};
  /// `issued` is counted in memory that the proxy's threads do not read, a GPU's; the header's
  /// word is brought up to date before a stop.
  bool counts_elsewhere = false;
  std::uint64_t first_sequence = 0; ///< where the numbers begin: tests let them wrap around
};

class ProxyMemory {
public:
  /// Throws Error (usage) for options that make no ring, Error (unavailable) without memory.
  explicit ProxyMemory(const ProxyOptions& options);
  ProxyMemory(const ProxyMemory&) = delete;
  ProxyMemory& operator=(const ProxyMemory&) = delete;

  const ProxyRingView& view() const { return view_; }
  ProxyHeader& header() { return *header_; }
  const ProxyHeader& header() const { return *header_; }

  struct Result {
    std::uint32_t number;
    std::uint8_t last_tag;
  };
  /// Throws Error (unavailable) when all are taken. Thread safe, like release_result().
  Result claim_result();
  /// With the tag of its last request; only if that was answered.
  void release_result(const Result& result) noexcept;

  /// Why a request that is in the ring is not carried out, as far as the ring shows it.
  std::string culprit() const;

private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  ProxyHeader* header_ = nullptr;
  ProxyRingView view_{};
  std::mutex mutex_; ///< of free_results_
  std::vector<Result> free_results_;
};

} // namespace shmemctl
