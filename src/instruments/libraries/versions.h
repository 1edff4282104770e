// Versions of libraries that do not fit together in one process.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/libraries/libraries.h"

namespace shmemctl::libraries {

using Libraries = std::vector<std::shared_ptr<const Library>>;

/// "3.5.19-1" -> 3, 5, 19; numbers that are missing are 0. Empty without a number in front.
std::optional<std::array<int, 3>> release_of(std::string_view version);

/// `nvshmem-version-split`, `nvshmem-qp-layout`, `symbol-missing` of libraries that one process has
/// or would load, without subjects: who that is is for the caller to say.
Findings fit_findings(const Libraries& libraries);

/// As fit_findings(), and `library-twice` of files that one process has mapped.
Findings version_findings(const Libraries& libraries);

} // namespace shmemctl::libraries
