// Which PE writes to which in each round, so that no two PEs write to the same PE.
#pragma once

namespace shmemctl {

/// In n rounds every ordered pair occurs once, including each PE with itself.
inline int round_count(int n_pes) {
  return n_pes;
}
/// The PE that `pe` writes to in a round. Within a round this is a permutation of all PEs.
inline int target_of(int pe, int round, int n_pes) {
  return (pe + round) % n_pes;
}
/// The PE that writes to `pe` in a round.
inline int source_of(int pe, int round, int n_pes) {
  return (pe + n_pes - round) % n_pes;
}

} // namespace shmemctl
