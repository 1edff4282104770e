// How the MoE kernels are launched: blocks, warps, stages and shared memory. For host and device;
// no CUDA header.
#pragma once

#include <cstddef>
#include <string>

namespace shmemctl::moe {

/// Shared memory that a block may have on sm_90.
inline constexpr std::size_t max_shared_bytes = 227 << 10;

/// Shared memory of a block that kernels with bulk copies declare statically (notify: see there).
inline constexpr int own_shared_bytes = 512;

/// Launch settings of a kernel that moves rows by bulk copies.
struct Tuning {
  int sms = 24, warps = 7, stages = 2;
  /// Stages whose stores may still be in flight when the next load begins.
  int kept = 1;
  /// How many of a dispatch's `sms` only copy rows to this rank itself; 0: all SMs do both; -1:
  /// blocks_for_self() chooses.
  int self_sms = -1;
};

/// "", or why a kernel is refused whose blocks wait for blocks of other ranks, which wait for them
/// in turn: if a block becomes resident only after another one has ended, ranks wait for it
/// forever. SMs that other kernels occupy count as available, because those kernels end by
/// themselves.
/// @param of_multiprocessor blocks of this kernel that one SM holds
inline std::string refuse_nonresident_blocks(int blocks, int of_multiprocessor,
                                             int multiprocessors) {
  const int max_resident = of_multiprocessor * multiprocessors;
  if (blocks <= max_resident)
    return "";
  return "its blocks wait for each other, so all " + std::to_string(blocks) +
         " of them must be resident: they need " +
         std::to_string(of_multiprocessor > 0 ? (blocks + of_multiprocessor - 1) / of_multiprocessor
                                              : blocks) +
         " SMs, and " + std::to_string(multiprocessors) + " are available (" +
         std::to_string(of_multiprocessor) + " of its blocks fit one SM); take " +
         std::to_string(max_resident) + " blocks at most";
}

} // namespace shmemctl::moe
