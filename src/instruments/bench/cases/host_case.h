// The base of cases that run on the host: the parts of the runtime that they use, and their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/case.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

/// Like Arena, but without the Runtime, so that tests can run a case on PEs that are threads.
struct HostCaseContext {
  Rma& rma;
  Teams& teams;
  Collectives& collectives;
  int pe, n_pes;
  std::byte* memory;
  std::uint64_t seed;
  /// By PE: the transport that reaches its host memory; nullptr if there is none.
  std::vector<Transport*> transports = {};
};

/// A case that runs on the host.
class HostCase : public Case {
public:
  explicit HostCase(const Point& point) : point_(point) {}

  std::size_t bytes_needed(const Runtime& runtime, const Point& point) const final;
  void prepare(Arena& arena) final;

  /// bytes_needed() for a job of `n_pes` PEs.
  virtual std::size_t bytes_for(int n_pes) const = 0;
  /// prepare() with these parts of a runtime.
  void begin(const HostCaseContext& context);

protected:
  virtual void set_up() = 0;
  const Point& point() const { return point_; }
  /// The argument of begin(); valid from set_up() on.
  const HostCaseContext& context() const { return *context_; }
  /// For cases that load and store at their peers: an error that names a peer whose memory is not
  /// mapped here; "" if that of all peers is.
  std::string unmapped_peer(Runtime& runtime) const;
  /// Fills the first bytes of the memory with this PE's pattern.
  void fill(std::size_t size_bytes);
  /// The context with memory that the host can read: a copy if the memory is on the GPU.
  HostCaseContext seen();
  bool on_gpu() const { return gpu_ != nullptr; }
  /// The distance in bytes from this PE's memory to the mapped memory of each of these PEs; 0 if it
  /// is not mapped.
  std::vector<std::ptrdiff_t> deltas_to(const std::vector<int>& pes) const;

private:
  Point point_;
  std::optional<HostCaseContext> context_;
  PeGpu* gpu_ = nullptr; ///< the GPU whose heap the memory is in; nullptr: the host's heap
  std::size_t memory_bytes_ = 0;
  std::vector<std::byte> copy_;
};

/// The peers of a PE. Its data for to[k] goes to area k of that peer's memory; from[k] is the PE
/// that writes to area k of this PE's memory, that is, the PE whose to[k] is this PE.
struct Routes {
  std::vector<int> to, from;
};
Routes routes_of(const Point& point, int pe, int n_pes);
/// The length of `to` on a PE that sends.
int peers_of_a_sender(const Point& point, int n_pes);

} // namespace shmemctl::bench
