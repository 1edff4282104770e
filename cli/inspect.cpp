// `shmemctl inspect`: running processes: libraries, variables, and which process waits for which.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/session.h"
#include "cli/terminal.h"
#include "reports/text.h"
#include "src/base/file_tree.h"
#include "src/base/finding.h"
#include "src/base/input.h"
#include "src/base/options.h"
#include "src/base/secret_filter.h"
#include "src/base/text.h"
#include "src/instruments/gather/gather.h"
#include "src/instruments/inspect/inspect.h"
#include "src/instruments/inspect/inspect_report.h"
#include "src/instruments/inspect/job.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/identity.h"

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

/// The inspected machine: this one, or a recorded one with the results that were recorded on it.
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
  // The recorded results are about all processes, so they are used only with --all.
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
    throw bad_inspect("PID " + text, "not a process ID", "pass a PID that ps shows, or --all");
  return static_cast<int>(*number);
}

void check_flags(const InspectFlags& flags) {
  const int selections =
      (flags.pids.empty() ? 0 : 1) + (flags.user.empty() ? 0 : 1) + (flags.all ? 1 : 0);
  if (selections != 1)
    throw bad_inspect("inspect",
                      selections == 0 ? "no process given"
                                      : "PIDs, --user and --all exclude each other",
                      "pass either the PIDs of processes, or --user NAME, or --all");
  if (flags.duration_s && !flags.watch_s)
    throw bad_inspect("--duration", "applies only with --watch", "add --watch SECONDS");
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
      throw bad_inspect("--user " + flags.user,
                        sysroot.live() ? "no such user" : "no such user in the /etc/passwd there",
                        "pass a user of that machine (getent passwd), or a numeric user ID");
  }
  return selection;
}

std::string name_of_host(const Sysroot& sysroot) {
  return sysroot.read_line("/proc/sys/kernel/hostname").value_or("localhost");
}

/// The report's `processes`, without secrets.
nlohmann::json processes_of(const inspect::Inspection& found, const Options& options) {
  const SecretFilter hide(options);
  return inspect::processes_json(
      found, [&hide](std::vector<std::string> words) { return hide(std::move(words)); });
}

/// The report of the run so far.
void put(Session& session, const inspect::Inspection& found, const Options& options,
         const InspectSource& source) {
  const Sysroot& sysroot = *source.sysroot;
  Report& report = session.report();
  report.processes = processes_of(found, options);
  report.nic_counters = inspect::counter_rows(found, name_of_host(sysroot));
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
                      found.missing.front().reason, "list the processes with ps -e, or pass --all");
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
  session.set_deadline(std::nullopt); // the watch lasts until it is interrupted
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

// Under a launcher: all nodes of a job together.

/// One PE of a job that inspects: the first PE of each machine inspects it, PE 0 shows all results.
class JobInspector {
public:
  JobInspector(Session& session, const Context& context, const InspectFlags& flags,
               const Options& options, const Sysroot& sysroot, Bootstrap& bootstrap)
      : session_(session), context_(context), flags_(flags), options_(options), sysroot_(sysroot),
        bootstrap_(bootstrap), inspector_(sysroot) {
    const HostIdentity identity = read_machine_identity(sysroot);
    const auto pes = inspect::gather_pes(bootstrap, {identity.machine_id, ::getpid()}, deadline());
    selection_ = selection_of(flags, sysroot);
    if (sysroot.live())
      selection_.but = inspect::pids_beside(pes, bootstrap.rank());
    looks_ = inspect::looks(pes, bootstrap.rank());
    session.report().job = {bootstrap.size(), inspect::machine_count(pes), bootstrap.name(),
                            launcher_name(context.environment)};
  }

  ExitCode once() {
    session_.set_deadline(flags_.window_s + 2 * options_.number("TIMEOUT"));
    round();
    return conclude();
  }

  ExitCode repeatedly() {
    using Clock = std::chrono::steady_clock;
    session_.set_deadline(std::nullopt); // the watch lasts until it is interrupted
    const TextStyle style = text_style(context_, options_);
    const auto start = Clock::now();
    const auto every = std::chrono::duration<double>(*flags_.watch_s);
    for (bool more = true; more;) {
      const auto began = Clock::now();
      round();
      more = !flags_.duration_s ||
             Clock::now() + every <= start + std::chrono::duration<double>(*flags_.duration_s);
      if (leads() && more && session_.wants_text())
        std::cout << utc_now() << '\n'
                  << processes_text(session_.report().processes, style) << '\n'
                  << findings_text(session_.report().findings, style) << '\n'
                  << std::flush;
      more = more && (!leads() || require_stdout());
      // Clocks differ, so PE 0 decides for all PEs.
      bootstrap_.broadcast(&more, sizeof more, 0, deadline());
      if (more)
        std::this_thread::sleep_until(began + every);
    }
    return conclude();
  }

private:
  bool leads() const { return bootstrap_.rank() == 0; }
  Deadline deadline() const {
    return Deadline::after(std::chrono::duration<double>(
        options_.number("TIMEOUT") + flags_.window_s + flags_.watch_s.value_or(0)));
  }

  /// Collective: inspects the processes of all machines. On PE 0, the report contains the result.
  void round() {
    std::optional<inspect::HostInspection> own;
    if (looks_) {
      session_.phase("reading processes");
      const inspect::Inspection found = inspector_.inspect(selection_, flags_.window_s);
      const std::string host = name_of_host(sysroot_);
      own = inspect::host_inspection(found, processes_of(found, options_), host,
                                     inspect::counter_rows(found, host));
    }
    session_.phase("gathering the processes of all nodes");
    const auto parts = inspect::gather_inspections(bootstrap_, own ? &*own : nullptr, deadline());
    if (!leads())
      return;
    inspect::JobInspection all = inspect::join_hosts(parts, true);
    Report& report = session_.report();
    report.processes = std::move(all.processes);
    report.findings = std::move(all.findings);
    report.nic_counters = std::move(all.counters);
    session_.checkpoint();
  }

  /// Collective.
  ExitCode conclude() {
    session_.phase("agreeing on the verdict");
    const Report& report = session_.report();
    const ExitCode own =
        leads() && has_finding(report.findings, report.fail_on) ? ExitCode::finding : ExitCode::ok;
    int code = static_cast<int>(own);
    bootstrap_.broadcast(&code, sizeof code, 0, deadline());
    bootstrap_.finish(deadline());
    if (leads()) {
      if (report.processes.empty() && session_.wants_text())
        std::cout << "no process that may be read has a communication library loaded\n\n";
      session_.finish();
    }
    return static_cast<ExitCode>(code);
  }

  Session& session_;
  const Context& context_;
  const InspectFlags& flags_;
  const Options& options_;
  const Sysroot& sysroot_;
  Bootstrap& bootstrap_;
  inspect::Inspector inspector_;
  inspect::Selection selection_;
  bool looks_ = false;
};

ExitCode inspect_job(const Context& context, const InspectFlags& flags) {
  if (!flags.pids.empty())
    throw bad_inspect("PID " + flags.pids.front(),
                      "PIDs cannot be passed to a job: each node has processes of its own",
                      "pass --user NAME or --all, or start inspect without a launcher");
  if (!flags.source->from.empty())
    throw bad_inspect("--from " + flags.source->from,
                      "cannot be passed to a job: each PE inspects the node on which it runs",
                      "omit --from, or start inspect without a launcher");
  return with_bootstrap(context, [&flags](const BootstrapSession& job) {
    const std::string root = job.options.text("SYSROOT");
    const Sysroot sysroot(root.empty() ? "/" : root);
    JobInspector inspector(job.session, job.context, flags, job.options, sysroot, job.bootstrap);
    return flags.watch_s ? inspector.repeatedly() : inspector.once();
  });
}

void add_inspect_flags(CLI::App& command, InspectFlags& flags) {
  command.add_option("PID", flags.pids,
                     "PIDs of the processes to inspect; instead of them --user or --all, one of "
                     "which is needed under a launcher");
  command
      .add_option("--user", flags.user,
                  "Inspect all processes of this user (a name or a numeric ID) that have a "
                  "communication library loaded")
      ->type_name("NAME");
  command.add_flag(
      "--all", flags.all,
      "Inspect all processes that have a communication library loaded and that this user may read");
  command
      .add_option("--window", flags.window_s,
                  "Also measure the traffic of NICs, TCP connections and NVLinks over this time "
                  "(default: off)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 86400.0));
  command
      .add_option("--watch", flags.watch_s,
                  "Inspect again and again, at this interval, until interrupted or until "
                  "--duration has passed")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.2, 86400.0));
  command
      .add_option("-D,--duration", flags.duration_s,
                  "End --watch after this time (default: when interrupted)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 1e7));
}

} // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Look into running processes: libraries, variables, connections, who waits");
  command->footer(
      "Reads /proc, the files of mapped libraries, and what the kernel (netlink) and NVML report\n"
      "about processes; it attaches to nothing, sends no signal and changes nothing. What you may\n"
      "not read is listed as skipped: other users' processes need root.\n"
      "Started once per node by a launcher (mpirun, srun, run), it looks at all nodes: PE 0 shows\n"
      "them, and names the rank of the job that all others wait for.\n"
      "Exit code 1: a finding of severity error; 2: none of the given PIDs exists.\n"
      "Examples:\n"
      "  shmemctl inspect 4711\n"
      "  shmemctl inspect --all --window 2 --json inspect.json\n"
      "  shmemctl inspect --user ann --watch 5\n"
      "  srun -N 16 --ntasks-per-node 1 shmemctl inspect --user ann --json job.json\n"
      "  shmemctl inspect --all --from node.tar.zst\n"
      "  shmemctl inspect --all --sysroot copy-of-a-node");
  auto flags = std::make_shared<InspectFlags>();
  add_inspect_flags(*command, *flags);
  add_archive_flags(*command, context, flags->source);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      check_flags(*flags);
      if (launched_size(run_context.environment) > 1)
        return inspect_job(run_context, *flags);
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
