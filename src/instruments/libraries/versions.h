// Finds libraries whose versions do not fit together in one process.
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

/// The first three numbers of a version: "3.5.19-1" -> 3, 5, 19. Missing numbers are 0. Empty if
/// the text does not start with a number.
std::optional<std::array<int, 3>> release_of(std::string_view version);

/// The findings `nvshmem-version-split`, `nvshmem-qp-layout` and `symbol-missing` about the
/// libraries that one process has mapped or would load. The caller sets the subjects.
Findings fit_findings(const Libraries& libraries);

/// The findings of fit_findings(), and `library-twice` for files that one process has mapped.
Findings version_findings(const Libraries& libraries);

} // namespace shmemctl::libraries
