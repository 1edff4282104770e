// `gather`: records a machine as an archive, and reads the parts of one that topo, doctor and
// inspect use.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/instruments/doctor/doctor.h"
#include "src/model/topo/node.h"

namespace shmemctl::gather {

/// Results that only calls on the machine itself give, such as those of a GPU driver, and that the
/// files of the archive do not contain.
struct LiveResults {
  Environment environment;                   ///< environment variables for doctor
  std::map<std::string, CheckResult> checks; ///< doctor's checks, by their id
  Findings findings;                         ///< inspect's findings with an id in finding_ids
  std::set<std::string> finding_ids;         ///< ids whose findings differ from those of the files
};

struct GatherRequest {
  bool keep_names = false;
  Environment environment;  ///< environment of this process
  std::string nvml_library; ///< NVML library of the live machine
};

struct Gathered {
  std::string archive; ///< the archive, as read_archive() reads it
  std::size_t files = 0;
  std::size_t processes = 0;
  std::size_t results = 0; ///< number of checks and findings that the files alone do not give
  std::vector<std::string> left_out; ///< paths that were too long or exceeded the limits
};

/// Records the machine below `sysroot`. Runs doctor's checks and inspect there and again on the
/// recording, and adds the results that differ.
/// @param phase called with a description of the next step
Gathered gather(const Sysroot& sysroot, const GatherRequest& request,
                const std::function<void(const std::string&)>& phase);

/// The node model as the machine itself computed it, with NVML. Empty if the root has none; then
/// read_machine() reads the node from the files. Throws Error (usage) if it is damaged.
std::optional<Node> recorded_node(const Sysroot& sysroot);
/// The recorded LiveResults. Empty if the root has none. Throws Error (usage) if they are damaged.
std::optional<LiveResults> recorded_results(const Sysroot& sysroot);

/// The NVSHMEM release of a recorded node: the one that its processes have loaded or, if there is
/// none, the installed one.
struct RecordedNvshmem {
  std::optional<std::array<int, 3>> release; ///< empty if there are several
  std::string origin;                        ///< "loaded by PID 4000", "installed", "3.4.5, 3.5.19"
};
/// Empty for the live machine, and if no release is known.
std::optional<RecordedNvshmem> recorded_nvshmem(const Sysroot& sysroot);

/// Replaces the findings in `findings` that have a recorded id by those recorded on the machine.
Findings with_recorded(Findings findings, const LiveResults& results);

/// The text that recorded_results() reads.
std::string results_text(const LiveResults& results);
/// Reads results_text(). Throws Error (usage) if the text is damaged.
/// @param subject the archive's name, for the error message
LiveResults parse_results(const std::string& text, const std::string& subject);

} // namespace shmemctl::gather
