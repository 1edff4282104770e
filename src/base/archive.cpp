#include "src/base/archive.h"

namespace shmemctl {

/// Increase it when the fields of a message change.
const std::uint32_t archive_version = 5;

Error malformed_message(std::size_t pe, const std::string& what) {
  return Error(ExitCode::unavailable, "PE " + std::to_string(pe), "read its " + what,
               "malformed message", "report this as a bug in shmemctl, with the command line");
}

} // namespace shmemctl
