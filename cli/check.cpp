// `shmemctl check`: the node's acceptance test.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fmt/format.h>
#include <iostream>

#include "cli/expect.h"
#include "cli/host_comparison.h"
#include "cli/node_job.h"
#include "reports/verdict.h"
#include "src/base/text.h"
#include "src/instruments/check/acceptance.h"
#include "src/instruments/check/parts.h"
#include "src/model/topo/writers/writer.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

struct CheckFlags {
  PartChoice choice;
  bool nagios = false;
  std::shared_ptr<ExpectFlags> expect = std::make_shared<ExpectFlags>();
};

/// One run of `check`: its parts, one after the other.
class Acceptance {
public:
  Acceptance(Session& session, const Context& context, const Options& options,
             const CheckFlags& flags)
      : session_(session), context_(context), options_(options), choice_(flags.choice),
        expected_(flags.expect->file) {
    session_.output().ask_before_ending([this](int, bool) {
      if (const pid_t group = job_.load(); group > 0)
        ::kill(-group, SIGTERM); // the job has its own process group: no terminal signals it
      return false;
    });
  }
  ~Acceptance() { session_.output().ask_before_ending({}); }
  Acceptance(const Acceptance&) = delete;
  Acceptance& operator=(const Acceptance&) = delete;

  ExitCode run() {
    source_ = session_.load({});
    Report& report = session_.report();
    report.hosts = nlohmann::json::array({described_host(source_.node, source_.sysroot.get())});
    report.topology = topology_json(source_.node);
    const bool nothing = nothing_to_check(source_.node);
    if (nothing)
      report.findings.push_back(nothing_to_check_finding());
    const std::vector<CheckPart> parts = parts_of(choice_);
    for (std::size_t i = 0; i < parts.size(); ++i)
      run_part(parts[i], fmt::format("part {} of {}", i + 1, parts.size()));
    return session_.finish(nothing ? ExitCode::unavailable : ExitCode::ok);
  }

private:
  /// @param which "part 2 of 7"
  void run_part(const CheckPart& part, const std::string& which) {
    Report& report = session_.report();
    std::string reason = why_skipped(choice_, part, failed_);
    if (reason.empty())
      reason = why_impossible(part.id);
    if (!reason.empty()) {
      add_skipped(part.id, part.title, reason, report);
      return;
    }
    session_.phase(fmt::format("check: {}, {}", part.id, which));
    timed(part.id, [&] { perform(part); });
  }

  /// Runs `body`, which adds the verdict of a part, and records its time and whether it failed.
  template <class Body>
  void timed(const std::string& id, Body&& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    CheckRow& verdict = session_.report().checks.back();
    verdict.time_s = taken.count();
    if (failed_.empty() && verdict.status == "fail")
      failed_ = id;
    session_.checkpoint();
  }

  /// Why this machine cannot run the part; "" if it can.
  std::string why_impossible(const std::string& id) const {
    const bool is_job = id != expect_part && id != "topo" && id != "doctor";
    if (is_job && !source_.sysroot->live())
      return "--sysroot names another machine than the one that runs this";
    const auto gpus = std::count_if(source_.node.gpus.begin(), source_.node.gpus.end(),
                                    [](const Gpu& gpu) { return gpu.vendor == "nvidia"; });
    if (id == "gpu-links" && gpus < 2)
      return "fewer than two NVIDIA GPUs";
    if (id == "bench-gpu" && !pes_had_gpus_.value_or(gpus > 0))
      return "the PEs have no GPU";
    return "";
  }

  void perform(const CheckPart& part) {
    const std::string id = part.id;
    if (id == expect_part)
      judge(id, part.title, [this] { run_expectation(session_, source_, expected_); });
    else if (id == "topo")
      judge(id, part.title, [this] { run_topo(session_, options_, source_); });
    else if (id == "doctor")
      judge(id, part.title,
            [this] { run_doctor(session_, source_, context_.environment, {}, {}); });
    else if (id == "gpu-links")
      judge(id, part.title, [this] { run_gpu_links(session_, source_); });
    else if (id == "bench-gpu")
      run_job(gpu_job(choice_.level));
    else
      for (const JobItem& item : acceptance_jobs(choice_.level))
        if (item.id == id)
          run_job(item);
  }

  /// Runs a part in this process, and adds its verdict over the findings that it added.
  template <class Body>
  void judge(const std::string& id, const std::string& title, Body&& body) {
    Report& report = session_.report();
    const std::size_t before = report.findings.size();
    body();
    const Findings& all = report.findings;
    add_verdict(id, title, {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()},
                id == "doctor" ? doctor_summary(report.checks) : "nothing is wrong", report);
    CheckRow& verdict = report.checks.back();
    if (id == "topo" && verdict.status == "pass" && nothing_to_check(source_.node)) {
      verdict.status = "skipped"; // without devices nothing can be wrong, but that is no pass
      verdict.reason = "no GPU, no RDMA device";
    }
  }

  /// A part has its own time limit or, with --timeout, the remaining time less a tenth for the
  /// report.
  void run_job(JobItem item) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin_;
    if (options_.value("TIMEOUT").set())
      item.timeout_s =
          std::max(1.0, std::floor(0.9 * (options_.number("TIMEOUT") - taken.count())));
    std::vector<std::string> argv = item.arguments;
    argv.insert(argv.begin(), "shmemctl");
    Environment environment = part_environment(context_);
    environment["SHMEMCTL_FAIL_ON"] = "error"; // this process judges the part's findings
    const Report part =
        absorb(item, run_child(own_program(), argv, environment, item.timeout_s, &job_),
               session_.report());
    if (item.id == "bringup")
      pes_had_gpus_ = had_gpus(part);
  }

  Session& session_;
  const Context& context_;
  const Options& options_;
  const PartChoice& choice_;
  const std::string& expected_; ///< the file of --expect
  NodeSource source_;
  std::string failed_;        ///< the first part that failed
  std::atomic<pid_t> job_{0}; ///< the process group of the job that runs
  std::optional<bool> pes_had_gpus_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The limit of the whole follows from the limits of the parts, unless --timeout is set. In a job,
/// --timeout applies, because the other processes wait that long.
void set_time_limit(Session& session, const Context& context, const Options& options, int level) {
  if (!options.value("TIMEOUT").set() && launched_size(context.environment) <= 1)
    session.set_deadline(time_limit_s(level));
}

ExitCode run_check(Context& context, const CheckFlags& flags) {
  HostComparison hosts;
  return with_node_session(
      context, true,
      [&](Session& session, const Options& options) {
        set_time_limit(session, context, options, flags.choice.level);
        return Acceptance(session, context, options, flags).run();
      },
      &hosts);
}

void require_nagios_alone(const Context& context) {
  if (context.json_path == "-" || context.csv_path == "-")
    throw Error(ExitCode::usage, "--nagios", "",
                "its one line goes to stdout, so no report can go there",
                "name a file: --json FILE or --csv FILE");
  if (launched_size(context.environment) > 1)
    throw Error(ExitCode::usage, "--nagios", "",
                "it checks one host, but a launcher started several processes as one job",
                "start one process on each host, without a launcher");
}

/// One line, and the exit codes that monitoring expects.
ExitCode run_for_nagios(Context& context, const CheckFlags& flags) {
  require_nagios_alone(context);
  try {
    return with_session(context, [&](Session& session, const Options& options) {
      set_time_limit(session, context, options, flags.choice.level);
      session.defer_output();
      Acceptance(session, context, options, flags).run();
      std::cout << nagios_line(session.report()) << std::flush;
      session.output().finish(session.report());
      return static_cast<ExitCode>(nagios_code(session.report()));
    });
  } catch (const Error& error) {
    std::cout << "SHMEMCTL UNKNOWN - " << safe_text(error.message()) << '\n' << std::flush;
    return ExitCode::unavailable;
  }
}

void add_part_flags(CLI::App& command, PartChoice& choice) {
  command
      .add_option("--level", choice.level,
                  "1: topo, doctor and bringup, in seconds; 2 (default): also gpu-links, bench, "
                  "moe and bench-gpu with short sweeps, up to a minute; 3: the same with sweeps of "
                  "many sizes, for minutes")
      ->check(CLI::Range(1, soak_level));
  command
      .add_option("--only", choice.only,
                  "Run only these parts, at any --level (comma-separated): topo, doctor, "
                  "gpu-links, bringup, bench, moe, bench-gpu; with --expect also expect, the "
                  "comparison with that file")
      ->delimiter(',')
      ->type_name("PART");
  command
      .add_option("--skip", choice.skip, "Skip these parts, named as in --only (comma-separated)")
      ->delimiter(',')
      ->type_name("PART");
  command.add_flag("--fail-early", choice.fail_early,
                   "Run no further part after the first that failed");
}

} // namespace

void add_check(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Acceptance test of a node: topo, doctor, bring-up of 4 PEs, benchmark sweeps (on its GPUs, "
      "too) and a MoE round trip; ends with a verdict, such as PASS or FAIL");
  command->footer(
      "Prints what is wrong, a line for each part, and the verdict; --verbose prints all that was\n"
      "found. Exit code 1: a part failed; 3: nothing to check, there is neither a GPU nor an RDMA\n"
      "device. With --sysroot only expect (with --expect), topo and doctor run. --timeout limits\n"
      "the whole run; without it, that limit follows from --level, and each part that starts PEs\n"
      "has one of its own.\n"
      "--nagios prints one line and returns 0 OK, 1 WARNING, 2 CRITICAL or 3 UNKNOWN.\n"
      "Examples:\n"
      "  shmemctl check --json check.json\n"
      "  shmemctl check --level 1 --fail-early\n"
      "  shmemctl check --only doctor,bringup\n"
      "  shmemctl check --level 3 --skip moe --timeout 3600");
  auto flags = std::make_shared<CheckFlags>();
  add_part_flags(*command, flags->choice);
  command->add_flag(
      "--nagios", flags->nagios,
      "Print one line for Nagios, Icinga or Checkmk, and return the exit codes that "
      "they expect: 0 to 3 (not in a job of several processes; --json and --csv need a file)");
  add_option(*command, context, "SYSROOT");
  add_mapping_flags(*command, context);
  add_expect_flags(*command, flags->expect);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      flags->choice.expects = !flags->expect->file.empty();
      require_parts(flags->choice);
      if (!flags->expect->record.empty())
        return once_per_job(run_context, [&](Session& session, const Options&) {
          return record_node(session, run_context, flags->expect->record);
        });
      return flags->nagios ? run_for_nagios(run_context, *flags) : run_check(run_context, *flags);
    };
  });
}

} // namespace shmemctl
