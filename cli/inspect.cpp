// `shmemctl inspect`: running processes of others: libraries, variables, who waits for whom.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/session.h"
#include "cli/terminal.h"
#include "reports/text.h"
#include "src/base/file_tree.h"
#include "src/base/input.h"
#include "src/base/options.h"
#include "src/base/secret_filter.h"
#include "src/base/text.h"
#include "src/instruments/gather/gather.h"
#include "src/instruments/inspect/inspect.h"
#include "src/instruments/inspect/inspect_report.h"

namespace shmemctl {

namespace {

struct InspectFlags {
  std::vector<std::string> pids;
  std::string user;
  bool all = false;
  double window_s = 0;
  std::optional<double> watch_s, duration_s;
  std::shared_ptr<SourceFlags> source = std::make_shared<SourceFlags>();
};

/// What is looked at: a machine, or a recorded one with what was found on the machine itself.
struct InspectSource {
  std::unique_ptr<Sysroot> sysroot;
  std::optional<gather::LiveResults> recorded;
};

InspectSource open_source(const InspectFlags& flags, const Options& options) {
  InspectSource source;
  const std::string& from = flags.source->from;
  if (!from.empty()) {
    source.sysroot =
        std::make_unique<Sysroot>(std::make_shared<const FileTree>(read_archive(
                                      read_input(from, archive_limits::max_packed_bytes), from)),
                                  from);
  } else {
    const std::string root = options.text("SYSROOT");
    source.sysroot = std::make_unique<Sysroot>(root.empty() ? "/" : root);
  }
  // It is of all processes together.
  if (flags.all)
    source.recorded = gather::recorded_results(*source.sysroot);
  return source;
}

Error bad_inspect(const std::string& subject, const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, subject, "", problem, fix};
}

int parse_pid(const std::string& text) {
  constexpr long long largest = 1 << 22; // what the kernel allows
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > largest)
    throw bad_inspect("PID " + text, "not the number of a process",
                      "pass the number that ps shows, or --all");
  return static_cast<int>(*number);
}

void check_flags(const InspectFlags& flags) {
  const int ways =
      (flags.pids.empty() ? 0 : 1) + (flags.user.empty() ? 0 : 1) + (flags.all ? 1 : 0);
  if (ways != 1)
    throw bad_inspect("inspect", ways == 0 ? "no process is named" : "processes are named twice",
                      "pass the PIDs of processes, or --user NAME, or --all");
  if (flags.duration_s && !flags.watch_s)
    throw bad_inspect("--duration", "there is nothing that it ends", "add --watch SECONDS");
}

inspect::Selection selection_of(const InspectFlags& flags, const Sysroot& sysroot) {
  inspect::Selection selection;
  for (const std::string& pid : flags.pids)
    selection.pids.push_back(parse_pid(pid));
  std::sort(selection.pids.begin(), selection.pids.end());
  selection.pids.erase(std::unique(selection.pids.begin(), selection.pids.end()),
                       selection.pids.end());
  if (!flags.user.empty()) {
    selection.user = inspect::user_id(sysroot, flags.user);
    if (!selection.user)
      throw bad_inspect("--user " + flags.user, "no such user in /etc/passwd",
                        "pass a name of getent passwd, or the user's number");
  }
  return selection;
}

/// The report as it would be if the run ended now.
void put(Session& session, const inspect::Inspection& found, const Options& options,
         const InspectSource& source) {
  const Sysroot& sysroot = *source.sysroot;
  Report& report = session.report();
  const SecretFilter hide(options);
  report.processes = inspect::processes_json(
      found, [&hide](std::vector<std::string> words) { return hide(std::move(words)); });
  report.nic_counters = inspect::counter_rows(
      found, sysroot.read_line("/proc/sys/kernel/hostname").value_or("localhost"));
  report.findings =
      source.recorded ? gather::with_recorded(found.findings, *source.recorded) : found.findings;
  session.checkpoint();
}

ExitCode inspect_once(Session& session, const InspectFlags& flags, const Options& options,
                      const InspectSource& source) {
  const Sysroot& sysroot = *source.sysroot;
  const inspect::Selection selection = selection_of(flags, sysroot);
  session.set_deadline(flags.window_s + options.number("TIMEOUT"));
  session.phase("reading processes");
  const inspect::Inspection found = inspect::Inspector(sysroot).inspect(selection, flags.window_s);
  if (found.processes.empty() && !found.missing.empty())
    throw bad_inspect("PID " + std::to_string(found.missing.front().pid),
                      found.missing.front().reason, "list processes by ps -e, or pass --all");
  put(session, found, options, source);
  if (found.processes.empty() && session.wants_text())
    std::cout << "no process that may be read has a communication library loaded\n\n";
  return session.finish();
}

ExitCode inspect_repeatedly(Session& session, const Context& context, const InspectFlags& flags,
                            const Options& options, const InspectSource& source) {
  const Sysroot& sysroot = *source.sysroot;
  using Clock = std::chrono::steady_clock;
  const inspect::Selection selection = selection_of(flags, sysroot);
  session.set_deadline(std::nullopt); // lasts until it is interrupted
  session.leave_terminal();
  inspect::Inspector inspector(sysroot);
  const TextStyle style = text_style(context, options);
  const auto start = Clock::now();
  const auto every = std::chrono::duration<double>(*flags.watch_s);
  for (;;) {
    const auto round = Clock::now();
    put(session, inspector.inspect(selection, flags.window_s), options, source);
    const Report& report = session.report();
    const bool last =
        flags.duration_s &&
        Clock::now() + every > start + std::chrono::duration<double>(*flags.duration_s);
    if (last) // finish() prints it
      return session.finish();
    if (session.wants_text())
      std::cout << utc_now() << '\n'
                << processes_text(report.processes, style) << '\n'
                << findings_text(report.findings, style) << '\n'
                << std::flush;
    if (!require_stdout()) // later rounds would not be shown
      return session.finish();
    std::this_thread::sleep_until(round + every);
  }
}

void add_inspect_flags(CLI::App& command, InspectFlags& flags) {
  command.add_option("PID", flags.pids, "Processes to look at");
  command
      .add_option("--user", flags.user,
                  "Those of this user that have a communication library loaded")
      ->type_name("NAME");
  command.add_flag("--all", flags.all,
                   "All that have a communication library loaded and that may be read");
  command
      .add_option("--window", flags.window_s,
                  "Also watch the byte counters of NICs for this time (default: not)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 86400.0));
  command.add_option("--watch", flags.watch_s, "Repeat it at this interval until interrupted")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.2, 86400.0));
  command.add_option("-D,--duration", flags.duration_s, "End --watch after this time")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 1e7));
}

} // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Look into running processes: libraries, variables, connections, who waits");
  command->footer(
      "Reads /proc and the files of mapped libraries; it attaches to nothing, sends no signal and\n"
      "changes nothing. What the user who runs it may not read is listed as skipped: processes of\n"
      "others need root.\n"
      "Exit code 1: a finding of severity error; 2: none of the processes is there.\n"
      "Examples:\n"
      "  shmemctl inspect 4711\n"
      "  shmemctl inspect --all --window 2 --json inspect.json\n"
      "  shmemctl inspect --user ann --watch 5\n"
      "  shmemctl inspect --all --from node.tar.zst\n"
      "  shmemctl inspect --all --sysroot copy-of-a-node");
  auto flags = std::make_shared<InspectFlags>();
  add_inspect_flags(*command, *flags);
  add_archive_flag(*command, flags->source);
  add_option(*command, context, "SYSROOT");
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      check_flags(*flags);
      return with_session(run_context, [&](Session& session, const Options& options) {
        const InspectSource source = open_source(*flags, options);
        if (flags->watch_s)
          return inspect_repeatedly(session, run_context, *flags, options, source);
        return inspect_once(session, *flags, options, source);
      });
    };
  });
}

} // namespace shmemctl
