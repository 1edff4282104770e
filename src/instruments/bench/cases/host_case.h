// The base of host cases: the parts of the runtime that they use, and their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/case.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

/// An Arena without the Runtime, so that tests can run a case on PEs that are threads.
struct HostCaseContext {
  Rma& rma;
  Teams& teams;
  Collectives& collectives;
  int pe, n_pes;
  std::byte* memory;
  std::uint64_t seed;
  /// By PE: the transport that reaches its host memory; nullptr: none.
  std::vector<Transport*> transports = {};
};

/// A case that runs on the host.
class HostCase : public Case {
public:
  explicit HostCase(const Point& point) : point_(point) {}

  std::size_t bytes_needed(const Runtime& runtime, const Point& point) const final;
  void prepare(Arena& arena) final;

  /// bytes_needed() of a job of `n_pes` PEs.
  virtual std::size_t bytes_for(int n_pes) const = 0;
  /// prepare() on these parts.
  void begin(const HostCaseContext& context);

protected:
  virtual void set_up() = 0;
  const Point& point() const { return point_; }
  /// What begin() was given; valid from set_up() on.
  const HostCaseContext& context() const { return *context_; }
  /// For cases that load and store at their peers: names a peer that is not mapped here; "" if all
  /// are.
  std::string unmapped_peer(Runtime& runtime) const;
  /// Puts this PE's pattern into the first bytes of the memory.
  void fill(std::size_t size_bytes);
  /// The context with its memory as the host sees it: a copy if it is GPU memory.
  HostCaseContext seen();
  bool on_gpu() const { return gpu_ != nullptr; }
  /// From here to the mapped memory of each of these PEs; 0 where it is not mapped.
  std::vector<std::ptrdiff_t> deltas_to(const std::vector<int>& pes) const;

private:
  Point point_;
  std::optional<HostCaseContext> context_;
  PeGpu* gpu_ = nullptr; ///< whose heap the memory is in; nullptr: the host's
  std::size_t memory_bytes_ = 0;
  std::vector<std::byte> copy_;
};

/// Whom a PE sends to and who sends to it. A PE's k-th peer keeps the area number k for it, so
/// from[k] is who writes to area k here: the PE whose to[k] this one is; -1 if there is none.
struct Routes {
  std::vector<int> to, from;
};
Routes routes_of(const Point& point, int pe, int n_pes);
/// Peers of a PE that sends: the length of `to` on such a PE.
int peers_of_a_sender(const Point& point, int n_pes);

} // namespace shmemctl::bench
