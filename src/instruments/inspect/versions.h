// Versions of libraries in one process that do not fit together.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/inspect/libraries.h"

namespace shmemctl::inspect {

using Libraries = std::vector<std::shared_ptr<const Library>>;

/// "3.5.19-1" -> 3, 5, 19; numbers that are missing are 0. Empty without a number in front.
std::optional<std::array<int, 3>> release_of(std::string_view version);

/// `nvshmem-version-split`, `nvshmem-qp-layout`, `library-twice`, `symbol-missing`, without
/// subjects: who has mapped these libraries is for the caller to say.
Findings version_findings(const Libraries& libraries);

} // namespace shmemctl::inspect
