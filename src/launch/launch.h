// `shmemctl run`: N copies of a program on this node, as one job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/options.h"

namespace shmemctl {

struct LaunchRequest {
  std::vector<std::string> command; ///< argv of each PE; argv[0] is looked up in PATH
  int n_pes = 1;
  int n_nodes = 1;      ///< virtual nodes, PEs in blocks (sizes differ by at most one)
  bool label = false;   ///< prefix each line of output with "[PE] "
  double timeout_s = 0; ///< of the whole job; 0 is none
  double grace_s = 3;   ///< between SIGTERM and SIGKILL when the job is ended
  Environment environment;
};

/// How one PE ended.
struct PeEnd {
  int pe = 0;
  int exit_status = 0; ///< exit code, or 128 + signal
  int signal = 0;
  std::string last_words; ///< its last line on stderr
};

struct LaunchResult {
  int exit_status = 0; ///< 0, or that of the PE that failed first
  int first_failed = -1;
  std::vector<PeEnd> ends; ///< by PE
};

/// Starts the PEs, passes SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGWINCH on, copies their
/// output line by line (whole lines are never mixed), and ends every process of the job, also
/// grandchildren, when one PE fails: SIGTERM, then SIGKILL after the grace. PEs die with the
/// launcher, also when that is killed by SIGKILL. Throws Error (usage: no such program;
/// unavailable: fork failed).
LaunchResult launch(const LaunchRequest& request);

} // namespace shmemctl
