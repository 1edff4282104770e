// Binds the measuring thread of each PE to a CPU (--pin).
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "src/base/sysroot.h"
#include "src/model/topo/cpus.h"
#include "src/runtime/runtime.h"

namespace shmemctl::bench {

/// The CPUs that the calling thread may use; empty if the kernel does not report them.
CpuSet thread_affinity();

/// The value of --pin.
struct PinChoice {
  bool wanted = true;
  std::vector<int> cpus; ///< by local rank; empty: chosen automatically if `wanted`
};
/// Parses "auto", "none", or a list of CPUs by local rank. Throws Error (usage).
PinChoice parse_pin_choice(const std::string& text);

/// What the PEs tell each other about their pinning.
struct PinState {
  std::uint64_t machine_id = 0;
  CpuSet allowed; ///< CPUs that the thread was allowed to use before pinning
  int numa = -1;  ///< NUMA node on which the PE runs
  int cpu = -1;   ///< CPU to which it is bound (the first, if by the launcher); -1: not bound
  bool by_launcher = false;
  std::string problem; ///< why it could not be pinned
};
void serialize(Archive& archive, PinState& state);

/// Binds the calling thread to one CPU, if wanted, as long as this object lives. Threads that it
/// starts meanwhile inherit the binding; those that already run are not changed.
class Pinning {
public:
  /// Collective; every PE passes the same choice. Without a list, a PE that the launcher has
  /// already bound to one core keeps that. Throws Error (usage) on all PEs if the list is too short
  /// or names a CPU that is not allowed.
  Pinning(Runtime& runtime, const PinChoice& choice, const Sysroot& sysroot = Sysroot());
  ~Pinning();
  Pinning(const Pinning&) = delete;
  Pinning& operator=(const Pinning&) = delete;

  /// Rows by PE; the same on all PEs.
  const std::vector<PinRow>& rows() const { return rows_; }
  /// `bench-oversubscribed`, `bench-unpinned`; the same on all PEs.
  const Findings& findings() const { return findings_; }
  /// The CPU of this PE; -1 if it is not pinned.
  int cpu() const { return cpu_; }

private:
  CpuSet before_;
  bool restore_ = false;
  int cpu_ = -1;
  std::vector<PinRow> rows_;
  Findings findings_;
};

/// The findings of Pinning, computed from the states of all PEs (by PE).
Findings pin_findings(const std::vector<PinState>& states, const std::vector<std::string>& hosts,
                      bool wanted);

} // namespace shmemctl::bench
