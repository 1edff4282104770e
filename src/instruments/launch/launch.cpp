#include "src/instruments/launch/launch.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>

#include "src/base/text.h"
#include "src/instruments/launch/job.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl {

namespace {

std::string pe_list(const std::vector<int>& pes) {
  constexpr std::size_t max_pes = 8;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(pes.size(), max_pes); ++i)
    names.push_back(std::to_string(pes[i]));
  const std::string more =
      pes.size() > max_pes ? " and " + std::to_string(pes.size() - max_pes) + " more" : "";
  return (pes.size() == 1 ? "PE " : "PEs ") + join(names, ", ") + more;
}

std::string with_last_line(const std::string& line, const PeEnd& end, const std::string& whose) {
  return end.last_words.empty() ? line : line + "; " + whose + " last words: " + end.last_words;
}

bool came_from_user(const LaunchResult& result, const PeEnd& end) {
  return std::any_of(result.forwarded.begin(), result.forwarded.end(), [&end](int signal) {
    return end.exit_status == 128 + signal ||
           ((signal == SIGINT || signal == SIGTERM) && end.exit_status == 128 + SIGINT);
  });
}

void require_sane(const LaunchRequest& request) {
  if (request.command.empty())
    throw Error(ExitCode::usage, "run", "", "no command given",
                "write the command after the options: shmemctl run -n 4 CMD ARGS...");
  if (request.n_pes < 1)
    throw Error(ExitCode::usage, "run", "", "the job needs at least one PE", "pass -n 1 or more");
  if (request.n_nodes < 1 || request.n_nodes > request.n_pes)
    throw Error(ExitCode::usage, "run", "",
                std::to_string(request.n_pes) + " PEs cannot be split into " +
                    std::to_string(request.n_nodes) + " nodes",
                "pass --nodes from 1 to " + std::to_string(request.n_pes));
}

} // namespace

int node_of_pe(int pe, int n_pes, int n_nodes) {
  const int small = n_pes / n_nodes;
  const int large_nodes = n_pes % n_nodes;
  const int in_large = large_nodes * (small + 1);
  return pe < in_large ? pe / (small + 1) : large_nodes + (pe - in_large) / small;
}

LaunchResult launch(const LaunchRequest& request, const OpenRendezvous& open_rendezvous) {
  require_sane(request);
  fill_standard_descriptors();
  LaunchJob job(request, open_rendezvous);
  return job.run();
}

bool all_printed_the_same_failure(const LaunchResult& result) {
  if (result.timed_out || result.first_failed < 0)
    return false;
  const PeEnd& first = result.ends.front();
  const bool alike =
      std::all_of(result.ends.begin(), result.ends.end(), [&first](const PeEnd& end) {
        return end.signal == 0 && end.exit_status == first.exit_status;
      });
  return alike && std::any_of(result.ends.begin(), result.ends.end(),
                              [](const PeEnd& end) { return !end.last_words.empty(); });
}

std::string failure_line(const LaunchResult& result) {
  if (result.timed_out)
    return "the job did not end within its deadline (--timeout); " + pe_list(result.late_pes) +
           " still ran";
  if (result.first_failed < 0)
    return "";
  const PeEnd& end = result.ends[static_cast<std::size_t>(result.first_failed)];
  if (came_from_user(result, end))
    return "";
  if (end.signal != 0)
    return with_last_line("PE " + std::to_string(end.pe) + " was killed by signal " +
                              std::to_string(end.signal) + " (" + ::strsignal(end.signal) + ")",
                          end, "its");
  const bool all = std::all_of(result.ends.begin(), result.ends.end(), [&end](const PeEnd& other) {
    return other.signal == 0 && other.exit_status == end.exit_status;
  });
  const std::string code = "ended with exit code " + std::to_string(end.exit_status);
  if (all && result.ends.size() > 1)
    return with_last_line("all " + std::to_string(result.ends.size()) + " PEs " + code, end,
                          "PE " + std::to_string(end.pe) + "'s");
  return with_last_line("PE " + std::to_string(end.pe) + " " + code, end, "its");
}

// launch() with the default rendezvous; tests use the other overload.

namespace {
/// A program may initialise OpenSHMEM at any time, so the rendezvous must live as long as the job.
constexpr double rendezvous_timeout_s = 7.0 * 86400;
} // namespace

LaunchResult launch(const LaunchRequest& request) {
  std::unique_ptr<Rendezvous> rendezvous;
  return launch(request, [&rendezvous] {
    rendezvous = Rendezvous::start_local(rendezvous_timeout_s);
    return rendezvous->id().text();
  });
}

} // namespace shmemctl
