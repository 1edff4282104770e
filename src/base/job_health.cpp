#include "src/base/job_health.h"

#include "src/base/deadline.h"
#include "src/base/error.h"

namespace shmemctl {

void JobHealth::give_up(const std::string& step, int peer) {
  const std::string whom = peer < 0 ? "other PEs" : "PE " + std::to_string(peer);
  throw Error(ExitCode::deadline, step, "finish", "timed out waiting for " + whom,
              "check the output of " + whom + ", or " + raise_timeout());
}

} // namespace shmemctl
