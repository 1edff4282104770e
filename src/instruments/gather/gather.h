// `gather`: a machine as an archive, and what topo, doctor and inspect take from one.
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

/// What calls on the machine itself have found, and the files of the archive do not give: only
/// there is a GPU driver to ask.
struct LiveResults {
  Environment environment;                   ///< environment for doctor
  std::map<std::string, CheckResult> checks; ///< doctor's checks, by their id
  Findings findings;                         ///< findings of inspect
  std::set<std::string> finding_ids;         ///< ids of inspect's `findings`, all of them
};

struct GatherRequest {
  bool keep_names = false;
  Environment environment;  ///< environment of this process
  std::string nvml_library; ///< NVML library of the live machine
};

struct Gathered {
  std::string archive; ///< read_archive() reads it
  std::size_t files = 0;
  std::size_t processes = 0;
  std::size_t results = 0;           ///< checks and findings that cannot be derived from its files
  std::vector<std::string> left_out; ///< paths that are too long, or too many
};

/// Records the machine under `sysroot`. Runs doctor's checks and inspect there and then over what
/// was recorded, and adds the results that differ.
/// @param phase called with what is done next
Gathered gather(const Sysroot& sysroot, const GatherRequest& request,
                const std::function<void(const std::string&)>& phase);

/// The node as the machine itself knew it, NVML included; empty if the root has none: then
/// read_machine() reads it from the files. Throws Error (usage) if it is damaged.
std::optional<Node> recorded_node(const Sysroot& sysroot);
/// Empty if the root has none. Throws Error (usage) if they are damaged.
std::optional<LiveResults> recorded_results(const Sysroot& sysroot);

/// The release of NVSHMEM of a recorded node: the one that its processes have loaded, else the one
/// that is installed.
struct RecordedNvshmem {
  std::optional<std::array<int, 3>> release; ///< empty: there are several
  std::string origin;                        ///< "loaded by PID 4000", "installed", "3.4.5, 3.5.19"
};
/// Empty for the live machine, and if no release is known.
std::optional<RecordedNvshmem> recorded_nvshmem(const Sysroot& sysroot);

/// `findings` with those of the recorded ids as they were on the machine.
Findings with_recorded(Findings findings, const LiveResults& results);

/// As recorded_results() reads them.
std::string results_text(const LiveResults& results);
/// Throws Error (usage).
/// @param subject the archive's name, for the message
LiveResults parse_results(const std::string& text, const std::string& subject);

} // namespace shmemctl::gather
