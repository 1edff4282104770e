// `shmemctl run`: N copies of a program on this node, as one job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/model/topo/cpus.h"

namespace shmemctl {

struct LaunchRequest {
  std::vector<std::string> command; ///< argv of each PE; argv[0] is looked up in PATH
  std::string program;              ///< file to execute, so that argv[0] is not looked up; "": none
  int n_pes = 1;
  /// Number of virtual nodes, which get blocks of PEs (sizes differ by at most one).
  int n_nodes = 1;
  bool label = false;   ///< prefix each line of output with "[PE] "
  double timeout_s = 0; ///< time limit of the whole job; 0: none
  double grace_s = 3;   ///< between SIGTERM and SIGKILL when the job is ended
  /// The job continues without PEs that it loses: while PE 0 runs, it does not end if another PE is
  /// killed or fails. Its exit status is PE 0's; if that is 0, that of the lost PE with the lowest
  /// number. Exit codes 3 and 124 mean that the job has failed, and still end it.
  bool loss_allowed = false;
  /// An error of shmemctl or its library that several PEs print identically is passed on only once,
  /// unless lines have labels.
  bool one_error = false;
  /// A status line on stderr, which must be a terminal, shows what the job is doing, as PE 0
  /// reports it.
  bool progress = false;
  Environment environment;
  std::vector<CpuSet> cpus = {}; ///< CPUs by PE (core_shares.h); empty: not bound
};

/// How one PE ended.
struct PeEnd {
  int pe = 0;
  int exit_status = 0; ///< exit code, or 128 + signal
  int signal = 0;
  std::string last_words; ///< last line of the PE on stderr
};

struct LaunchResult {
  /// The first failed PE's (see loss_allowed); 124 if timed_out; 130 if SIGINT ended a PE; or 0.
  int exit_status = 0;
  int first_failed = -1;
  std::vector<PeEnd> ends;  ///< by PE
  bool error_shown = false; ///< a PE's own error was passed on (LaunchRequest::one_error)
  bool timed_out = false;
  std::vector<int> late_pes;  ///< PEs that still ran when the deadline passed
  std::vector<int> forwarded; ///< SIGINT, SIGQUIT, SIGTERM and SIGHUP that were passed on
};

/// Runs the job: starts the PEs; forwards SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT,
/// SIGUSR1, SIGUSR2 and SIGWINCH; copies the PEs' output line by line (lines are never mixed);
/// and, if a PE fails, at the time limit, after SIGTERM or SIGHUP, or when all have ended, ends
/// every process of the job, including all descendants of PEs: SIGTERM (or that SIGHUP), then
/// SIGKILL after the grace period. A second SIGINT sends SIGKILL to all. PEs die with the launcher,
/// even if it is killed by SIGKILL; a guard process then kills every other process that has the
/// job's id in its environment (one that has cleared it escapes). Reaps every child of the calling
/// process, which must have only one thread. If stdout refuses output (a full disk), the job
/// continues, and up to 64 MiB of output are lost before the PEs get EPIPE. Throws Error (usage:
/// a bad request, no such program; unavailable: fork failed or, at the end, stdout or stderr could
/// not be written).
LaunchResult launch(const LaunchRequest& request);

/// Starts the rendezvous of the PEs and returns its UniqueId::text().
using OpenRendezvous = std::function<std::string()>;
/// launch() with another rendezvous than Rendezvous::start_local().
LaunchResult launch(const LaunchRequest& request, const OpenRendezvous& open_rendezvous);

/// One line that says how the job failed: "PE 2 was killed by signal 9 (Killed); its last words:
/// ..."; "" if it succeeded, or if it was interrupted by a signal from the user.
std::string failure_line(const LaunchResult& result);

/// Whether all PEs failed with the same exit code and one of them printed the reason, so that the
/// job's failure line would only repeat it.
bool all_printed_the_same_failure(const LaunchResult& result);

/// The virtual node of a PE. PEs are assigned in blocks whose sizes differ by at most one (larger
/// blocks first).
int node_of_pe(int pe, int n_pes, int n_nodes);

} // namespace shmemctl
