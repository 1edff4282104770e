// The results of all PEs, merged; the same on every PE, except for the times.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/base/archive.h"
#include "src/instruments/bringup/pair_check.h"
#include "src/instruments/bringup/reach_map.h"

namespace shmemctl {

struct BringupVerdict {
  int n_pes = 1;
  std::vector<TransportReach> transports;
  /// Failures of all PEs, sorted by transport, then pair. Identical ones that several PEs reported
  /// are listed once.
  std::vector<PairFailure> failures;
  std::vector<PePair> unreachable; ///< pairs that no transport reaches
  std::string advice;              ///< RemoteChoice::advice
  /// Why kernels could not be launched in a job with GPUs; "" if they could, or if there are no
  /// GPUs.
  std::string kernels_problem;
  /// By transport and PairOp: the time that this PE spent on it (PairWorld::time_s). Not for
  /// kernels, which do all operations at the same time.
  std::vector<std::array<double, pair_ops>> time_s;
  bool passed() const { return failures.empty() && unreachable.empty() && kernels_problem.empty(); }
};

void serialize(Archive& archive, PairFailure& failure);
/// This PE's failures as a message of at most 1 MiB: after the first 256 failures, only pairs
/// without details.
std::string failures_message(const std::vector<PairFailure>& failures);
/// @param messages failures_message() of every PE. Throws Error (unavailable) for a malformed
/// message.
std::vector<PairFailure> merge_failures(const std::vector<std::string>& messages);

/// One clause: "put of 4096 bytes by PE 1 to PE 3, transport shm: at offset 17 expected 0a1b, found
/// a5a5 (nothing arrived)".
std::string describe(const PairFailure& failure, const std::string& transport_name);

/// The distinct pairs for which `op` failed on this transport.
std::vector<PePair> failed_pairs(const BringupVerdict& verdict, int transport, PairOp op);
/// The number of ordered pairs for which `op` can be checked on this transport.
std::size_t checkable_pairs(const TransportReach& transport, PairOp op);

/// One transport's matrix as text; rows are sources. '+' means verified, 'x' wrong, '.' not
/// reached, '-' a PE that does not reach itself by this transport. With more than 32 PEs, it is by
/// node (`node_of` each PE), a cell shows its worst pair, and above 64 nodes it is not drawn.
std::string matrix_text(const BringupVerdict& verdict, int transport,
                        const std::vector<int>& node_of);

} // namespace shmemctl
