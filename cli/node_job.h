// Commands that need no runtime, run as a job: topo, doctor and check run once per host, env and
// sim once; PE 0 has the result.
#pragma once

#include <functional>

#include "cli/host_comparison.h"
#include "cli/session.h"

namespace shmemctl {

/// As with_session(), for a command about the machine that it runs on. In a job of several
/// processes, the first one on each host runs `body`, and the others wait. PE 0 prints what each
/// host found, under its name, and writes one report, merged as `report merge` does; all return the
/// highest exit code. Files with %h in their names are written by each host itself. If no bootstrap
/// can be opened, hosts cannot be joined: each prints for itself, and the code is at least that of
/// the bootstrap's error.
/// @param live the body examines a machine; otherwise (a recorded one) only PE 0 runs it
/// @param comparison compares the hosts of a job, on PE 0 when all have reported: what differs is
/// printed below what each host found, and is in the report. PE 0 reads its golden report before
/// any host begins. Null: hosts are not compared. In a run of one process, only `body` can compare
/// hosts
ExitCode with_node_session(Context& context, bool live,
                           const std::function<ExitCode(Session&, const Options&)>& body,
                           HostComparison* comparison = nullptr);

/// As with_session(), for a command with one result for the whole job: only PE 0 runs `body`; the
/// other processes end at once with ExitCode::ok, so that the job has the code of PE 0.
ExitCode once_per_job(Context& context,
                      const std::function<ExitCode(Session&, const Options&)>& body);

} // namespace shmemctl
