#include <cstddef>
#include <fmt/format.h>
#include <iterator>

#include "src/base/deadline.h"
#include "src/runtime/gpu/wait_error_text.h"

namespace shmemctl {

namespace {

/// The PE that is waited for. It is the PE itself if a block waits for other blocks of its grid.
std::string waited_for(const WaitReport& report, int pe) {
  return report.peer < 0     ? "another PE"
         : report.peer == pe ? "this PE's other blocks"
                             : "PE " + std::to_string(report.peer);
}

/// A description of the member of DeviceTeamFlags at this offset.
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
    return "a word outside of this PE's heap";
  return fmt::format("the word at offset {} of this PE's heap", report.offset_bytes);
}

WaitErrorText waited(const WaitReport& report, int pe, double timeout_s) {
  const std::string whom = waited_for(report, pe);
  return {ExitCode::deadline, "finish waiting for " + whom,
          fmt::format("timed out after {} s: {} is {}, expected {}", timeout_s,
                      name_of_word(report), report.seen, report.expected),
          (report.peer == pe ? "check what those blocks do" : "check the output of " + whom) +
              ", or " + raise_timeout()};
}

/// A timeout of a peer in a MoE call, or of this PE in an earlier call.
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

/// A collective that was refused before it began.
WaitErrorText refused(const WaitReport& report, const std::string& message,
                      const std::string& fix) {
  return {ExitCode::usage, fmt::format("begin a collective of team {}", report.expected), message,
          fix};
}

/// The name of NVSHMEM's function, without type and scope.
const char* name_of_call(DeviceCall call) {
  constexpr const char* names[] = {"call",
                                   "put",
                                   "put_nbi",
                                   "get",
                                   "get_nbi",
                                   "p",
                                   "g",
                                   "iput",
                                   "iget",
                                   "put_signal",
                                   "put_signal_nbi",
                                   "signal_op",
                                   "signal_fetch",
                                   "signal_wait_until",
                                   "wait_until",
                                   "test",
                                   "atomic",
                                   "barrier",
                                   "sync",
                                   "broadcast",
                                   "fcollect",
                                   "alltoall",
                                   "alltoalls",
                                   "reduce",
                                   "reducescatter",
                                   "maxloc_reduce"};
  static_assert(std::size(names) == static_cast<std::size_t>(DeviceCall::count));
  return call < DeviceCall::count ? names[static_cast<std::size_t>(call)] : names[0];
}

const char* name_of_argument(DeviceArgument argument) {
  constexpr const char* names[] = {"an argument", "dest", "source", "sig_addr", "ivar",
                                   "pe",          "team", "root",   "cmp",      "sig_op"};
  static_assert(std::size(names) == static_cast<std::size_t>(DeviceArgument::count));
  return argument < DeviceArgument::count ? names[static_cast<std::size_t>(argument)] : names[0];
}

WaitErrorText wrong_argument(const WaitReport& report, const std::string& message,
                             const std::string& fix) {
  return {ExitCode::usage, fmt::format("call NVSHMEM's {}", name_of_call(report.call)),
          fmt::format("{} is wrong: {}", name_of_argument(report.argument), message), fix};
}

/// A call needs an earlier transfer to be complete, but no call has completed it yet.
WaitErrorText not_complete(const WaitReport& report) {
  const auto earlier = static_cast<DeviceCall>(report.expected);
  const char* const use = earlier == DeviceCall::get_nbi ? "write to" : "read";
  return wrong_argument(report,
                        fmt::format("an earlier {} of this thread may still {} {:#x}",
                                    name_of_call(earlier), use, report.seen),
                        "call nvshmem_quiet between the two calls");
}

std::string describe_call(std::uint64_t word, DeviceCall other) {
  const CollectiveCall call = CollectiveCall::of(word);
  std::string text = fmt::format("{} of {} bytes", name_of_call(call.call), call.size_bytes);
  if (call.call == DeviceCall::broadcast && other == DeviceCall::broadcast)
    text += fmt::format(" from root {}", call.root);
  return text;
}

/// Two members of a team are in different collectives, or in the same one with different sizes or
/// roots.
WaitErrorText differing_calls(const WaitReport& report) {
  const DeviceCall mine = CollectiveCall::of(report.expected).call;
  const DeviceCall theirs = CollectiveCall::of(report.seen).call;
  return {ExitCode::usage, fmt::format("call NVSHMEM's {}", name_of_call(mine)),
          fmt::format("this PE calls {}, and PE {} calls {}",
                      describe_call(report.expected, theirs), report.peer,
                      describe_call(report.seen, mine)),
          "make the same collective calls in the same order, with the same sizes and root, on all "
          "members of the team"};
}

} // namespace

bool is_of_call(WaitKind kind) {
  switch (kind) {
  case WaitKind::no_such_pe:
  case WaitKind::outside_heap:
  case WaitKind::misaligned:
  case WaitKind::no_such_team:
  case WaitKind::no_such_value:
  case WaitKind::calls_differ:
  case WaitKind::not_complete:
  case WaitKind::exit_asked:
    return true;
  default:
    return false;
  }
}

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
    return !is_of_call(kind);
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
  case WaitKind::no_such_pe:
    return wrong_argument(report,
                          fmt::format("{} is none of the {} PEs",
                                      static_cast<std::int32_t>(report.seen), report.expected),
                          fmt::format("pass a number from 0 to {}", report.expected - 1));
  case WaitKind::outside_heap:
    return wrong_argument(report,
                          fmt::format("{} bytes at {:#x} are not in the symmetric heap",
                                      report.expected, report.seen),
                          "pass memory of nvshmem_malloc, calloc or align, and no more elements "
                          "than it holds");
  case WaitKind::misaligned:
    return wrong_argument(
        report, fmt::format("{:#x} is not a multiple of {} bytes", report.seen, report.expected),
        fmt::format("place the variable at a multiple of {} bytes", report.expected));
  case WaitKind::no_such_team:
    return wrong_argument(report,
                          fmt::format("{} is not a team", static_cast<std::int32_t>(report.seen)),
                          "check what the call that created the team returned");
  case WaitKind::no_such_value:
    return wrong_argument(report,
                          fmt::format("{} is none of the constants of this argument",
                                      static_cast<std::int32_t>(report.seen)),
                          "pass one of the constants that the call's description names");
  case WaitKind::calls_differ:
    return differing_calls(report);
  case WaitKind::not_complete:
    return not_complete(report);
  case WaitKind::exit_asked:
    return {ExitCode::interrupted, "continue",
            fmt::format("it called nvshmem_global_exit with status {}",
                        static_cast<std::int32_t>(report.seen)),
            "check why the program ends the job"};
  case WaitKind::no_path:
    return {ExitCode::unavailable, "reach " + waited_for(report, pe),
            "kernels have no path to it" + (no_path.empty() ? "" : ": " + no_path),
            "run shmemctl bringup to see which PEs can reach each other"};
  default:
    return {ExitCode::unavailable, "reach " + waited_for(report, pe),
            fmt::format("a kernel reported a network error of kind {} (its values: {}, {})",
                        static_cast<unsigned>(report.kind), report.expected, report.seen),
            "check the output of " + waited_for(report, pe)};
  }
}

} // namespace shmemctl
