// Whether all blocks of a launch can be resident at a time. Host only; no CUDA header.
#pragma once

#include <string>

namespace shmemctl::moe {

/// "", or why a kernel whose blocks wait for those of other ranks, and those for its own, is not
/// launched: with a block that is not resident until another one ends, all would wait for it in
/// vain. What other work holds for a time is not counted: it ends by itself.
/// @param of_multiprocessor blocks of this kernel that a multiprocessor holds
inline std::string refuse_nonresident_blocks(int blocks, int of_multiprocessor,
                                             int multiprocessors) {
  const int most = of_multiprocessor * multiprocessors;
  if (blocks <= most)
    return "";
  return "its blocks wait for each other, so all " + std::to_string(blocks) +
         " of them must be resident: they want " +
         std::to_string(of_multiprocessor > 0 ? (blocks + of_multiprocessor - 1) / of_multiprocessor
                                              : blocks) +
         " SMs, and " + std::to_string(multiprocessors) + " are available (" +
         std::to_string(of_multiprocessor) + " of its blocks fit one SM); take " +
         std::to_string(most) + " blocks at most";
}

} // namespace shmemctl::moe
