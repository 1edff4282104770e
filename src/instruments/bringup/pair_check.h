// Put, get, atomics and put-with-signal between every ordered pair of PEs. The PE that receives
// data verifies it by loads from its memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/instruments/bringup/check_buffer.h"
#include "src/instruments/bringup/pattern.h"
#include "src/runtime/rma.h"

namespace shmemctl {

enum class PairOp : std::uint8_t { put, get, fetch_add, compare_swap, put_signal };
inline constexpr int pair_ops = 5;
/// "put", "get", "fetch-add", "compare-swap", "put-signal".
const char* to_string(PairOp op);
/// The capability that a transport needs for the operation.
unsigned needed_capability(PairOp op);

/// One transfer that did not do what it should.
struct PairFailure {
  int transport = 0;
  PairOp op = PairOp::put;
  int source = 0, target = 0; ///< the pair that is to blame; `source` calls the operation
  std::uint64_t size_bytes = 0, offset_bytes = 0;
  /// Bytes in hexadecimal, from the offset on; "" for failures without bytes.
  std::string expected, found;
  std::string note; ///< what the failure means, as one clause
  bool operator==(const PairFailure&) const = default;
};

/// What the check of one transport needs. All PEs pass the same layout and capabilities.
struct PairWorld {
  Rma& rma;                    ///< uses the tested transport for every PE that it reaches
  int transport = 0;           ///< number of the transport, part of the patterns
  std::byte* buffer = nullptr; ///< symmetric, of CheckBuffer::size_bytes()
  const CheckBuffer& layout;
  /// Capabilities of the transport from one PE to another; the same on all PEs.
  std::function<unsigned(int source, int target)> capabilities;
  /// Barrier over all PEs that also orders memory. If it uses the tested transport, and that is
  /// broken, the check fails in it instead of returning failures.
  std::function<void()> sync;
  /// Called before each round.
  std::function<void(int round)> announce = {};
  /// How long a target waits for a round's signals; then it looks only once more, after a sync.
  double signal_timeout_s = 2;
  /// By PairOp: the time that this PE spends on each operation and its verification, without waits
  /// for other PEs, is added here. nullptr: not measured.
  std::array<double, pair_ops>* time_s = nullptr;
};

/// Collective. Returns what this PE saw fail, as source or as target: at most `max_failures`, in
/// the order of rounds. An operation that throws is a failure of its pair, unless the job has
/// failed or a deadline has passed; then the error is passed on.
std::vector<PairFailure> check_pairs(const PairWorld& world);
inline constexpr std::size_t max_failures = 4096;

} // namespace shmemctl
