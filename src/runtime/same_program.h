// Whether all PEs run one program, which symmetric global variables need.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shmemctl {

/// The first PE whose program is not the job's, and what the job's is. The job's program is the one
/// that most PEs run; of several, the one with the lowest PE.
struct OtherProgram {
  int pe = -1;
  int reference_pe = -1; ///< the first PE that runs the job's program
};
/// @param programs by PE: what tells a program from others (StaticDataRegion::fingerprint())
std::optional<OtherProgram> find_other_program(const std::vector<std::string>& programs);

} // namespace shmemctl
