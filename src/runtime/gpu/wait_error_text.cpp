#include <cstddef>
#include <fmt/format.h>

#include "src/base/timeout_hint.h"
#include "src/runtime/gpu/wait_error_text.h"

namespace shmemctl {

namespace {

/// The others of the PE's own launch are waited for where it has to do with all of a grid.
std::string waited_for(const WaitReport& report, int pe) {
  return report.peer < 0     ? "another PE"
         : report.peer == pe ? "this PE's other blocks"
                             : "PE " + std::to_string(report.peer);
}

/// Which member of DeviceTeamFlags it is.
std::string name_of_cell(std::uint64_t offset_bytes) {
  const std::uint64_t at = offset_bytes % sizeof(DeviceTeamFlags);
  std::string name;
  if (at < offsetof(DeviceTeamFlags, expected))
    name = "the count of its arrivals at barriers and syncs";
  else if (at < offsetof(DeviceTeamFlags, entered))
    name = "the number of the last barrier or sync that it has entered";
  else if (at < offsetof(DeviceTeamFlags, done))
    name = "the number of the last collective that it has entered";
  else if (at < offsetof(DeviceTeamFlags, sizes))
    name = "the count of its stores in collectives";
  else if (at < offsetof(DeviceTeamFlags, epoch))
    name = "the number of the last collect whose size it has sent";
  else
    name = "the number of the collective to which its last message belongs";
  return fmt::format("{} of team {}", name, offset_bytes / sizeof(DeviceTeamFlags));
}

std::string name_of_word(const WaitReport& report) {
  if (report.kind == WaitKind::cell)
    return name_of_cell(report.offset_bytes);
  if (report.offset_bytes == UINT64_MAX)
    return "a word outside of its heap";
  return fmt::format("the word at offset {} of its heap", report.offset_bytes);
}

WaitErrorText waited(const WaitReport& report, int pe, double timeout_s) {
  const std::string whom = waited_for(report, pe);
  return {ExitCode::deadline, "wait for " + whom,
          fmt::format("timed out after {} s: {} is {}, expected {}", timeout_s,
                      name_of_word(report), report.seen, report.expected),
          (report.peer == pe ? "check what those blocks do" : "check the output of " + whom) +
              ", or " + raise_timeout()};
}

/// A peer's timeout in a call of MoE, or this PE's own in an earlier call.
WaitErrorText timed_out_elsewhere(const WaitReport& report, int pe) {
  const bool own = report.seen == static_cast<std::uint64_t>(pe);
  const std::string who = own ? "this PE" : fmt::format("PE {}", report.seen);
  const std::string whom = report.peer == pe ? "this PE" : fmt::format("PE {}", report.peer);
  return {ExitCode::deadline,
          own ? "begin a dispatch or combine"
              : fmt::format("complete a dispatch or combine with {}", who),
          fmt::format("{} timed out in call {} waiting for {}", who, report.expected, whom),
          (report.peer == pe ? "check what this PE did before the call"
                             : "check the output of " + whom) +
              ", or " + raise_timeout()};
}

/// What was not begun: of a team.
WaitErrorText refused(const WaitReport& report, const std::string& message,
                      const std::string& fix) {
  return {ExitCode::usage, fmt::format("begin a collective of team {}", report.expected), message,
          fix};
}

} // namespace

bool is_of_network(WaitKind kind) {
  switch (kind) {
  case WaitKind::word:
  case WaitKind::cell:
  case WaitKind::blocks:
  case WaitKind::team_size:
  case WaitKind::no_member:
  case WaitKind::no_reduction:
  case WaitKind::call_failed:
    return false;
  default:
    return true;
  }
}

WaitErrorText describe_wait(const WaitReport& report, int pe, double timeout_s,
                            const std::string& no_path) {
  switch (report.kind) {
  case WaitKind::word:
  case WaitKind::cell:
    return waited(report, pe, timeout_s);
  case WaitKind::blocks:
    return {ExitCode::deadline, "synchronize the blocks of the launch",
            fmt::format("timed out after {} s: {} of {} blocks have arrived", timeout_s,
                        report.seen, report.expected),
            "launch no more blocks than are resident at once (a cooperative launch), make the call "
            "on all of them, or " +
                raise_timeout()};
  case WaitKind::team_size:
    return refused(report,
                   fmt::format("it has {} members, and kernel collectives support at most {}",
                               report.seen, DeviceTeamFlags::max_members),
                   "split the team, or use the host's collectives");
  case WaitKind::no_member:
    return refused(report, "this PE is not a member",
                   "call collectives on the team's members only");
  case WaitKind::no_reduction:
    return refused(report, "and, or, xor are for integers, not floating-point numbers",
                   "choose sum, min, max or prod, or an integer type");
  case WaitKind::call_failed:
    return timed_out_elsewhere(report, pe);
  case WaitKind::no_path:
    return {ExitCode::unavailable, "reach " + waited_for(report, pe),
            "kernels have no path to it" + (no_path.empty() ? "" : ": " + no_path),
            "run shmemctl bringup to see which PEs can reach each other"};
  default:
    return {ExitCode::unavailable, "reach " + waited_for(report, pe),
            fmt::format("a network operation in a kernel failed (kind {}, expected {}, seen {})",
                        static_cast<unsigned>(report.kind), report.expected, report.seen),
            "check the output of " + waited_for(report, pe)};
  }
}

} // namespace shmemctl
