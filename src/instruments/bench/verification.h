// The check of the PEs' memory after the timed loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/case.h"

namespace shmemctl::bench {

/// What one PE found.
struct PeVerdict {
  std::string unverified_reason; ///< not empty: why nothing was checked
  std::optional<WrongByte> wrong;
};
void serialize(Archive& archive, WrongByte& wrong);
void serialize(Archive& archive, PeVerdict& verdict);

/// The results of all PEs together.
struct Verification {
  Verified verified = Verified::unchecked;
  std::string reason;           ///< why unchecked or failed
  std::vector<WrongByte> wrong; ///< at most one byte for each PE
};
Verification merge_verdicts(const std::vector<PeVerdict>& by_pe);

/// "PE 1, offset 17: expected 0x2a, found 0xa5 (slot 3 of iteration 17 from PE 0)".
std::string describe(const WrongByte& wrong);

/// Collective: after a barrier, every PE verifies its memory. Returns the same on all PEs.
Verification verify_point(Runtime& runtime, Case& body, std::uint64_t iterations);

} // namespace shmemctl::bench
