// Which PE talks to which in a round, so that no two write to the same PE.
#pragma once

namespace shmemctl {

/// In n rounds every ordered pair comes once, each PE with itself included.
inline int round_count(int n_pes) {
  return n_pes;
}
/// Whom `pe` writes to in a round: a permutation of all PEs.
inline int target_of(int pe, int round, int n_pes) {
  return (pe + round) % n_pes;
}
/// Who writes to `pe` in a round.
inline int source_of(int pe, int round, int n_pes) {
  return (pe + n_pes - round) % n_pes;
}

} // namespace shmemctl
