#include "cli/job_session.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <iostream>
#include <optional>
#include <utility>

#include "cli/host_description.h"
#include "cli/session.h"
#include "reports/text.h"
#include "src/base/finding.h"
#include "src/base/json_values.h"
#include "src/base/secret_filter.h"
#include "src/base/signal_name.h"
#include "src/base/watchdog.h"
#include "src/instruments/bringup/bringup.h"
#include "src/instruments/bringup/job_networks.h"
#include "src/model/topo/mapping/mapping_json.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/readers/sysfs_nics.h"
#include "src/runtime/bootstrap/launcher_command.h"
#include "src/runtime/bootstrap/launcher_variables.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/locality.h"

namespace shmemctl {

namespace {

constexpr double slack_factor = 1.5;
constexpr double slack_s = 2;

/// Collective: each host once, described by its first PE, and the nodes that differ from PE 0's.
JobHosts gather_hosts(Runtime& runtime, const Options& options) {
  const std::vector<HostPes> places = hosts_of_job(runtime.placement());
  std::optional<HostDescription> own;
  for (const HostPes& place : places)
    if (place.leader == runtime.pe()) {
      const Sysroot sysroot;
      const std::vector<int>& pes =
          runtime.placement().node_pes[static_cast<std::size_t>(runtime.placement().my_node())];
      own = describe_host(
          runtime.node(), mapping_in_use(runtime.node(), runtime.nics(), pes.size()), pes, place,
          with_virtual_interfaces(read_machine(sysroot, options.text("NVML_LIBRARY")), sysroot),
          &sysroot);
    }
  return gather_job_hosts(places, runtime.pe(), own, [&runtime](const std::string& text) {
    return runtime.gather_text(text);
  });
}

/// What one world reports to the others if INIT_MODE makes several worlds: at most about 1 MiB, the
/// limit of a gathered text.
std::string world_text(const Findings& findings, ExitCode code) {
  constexpr std::size_t max_findings = 200, max_bytes = 1500;
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings)
    if (finding.severity == Severity::error && list.size() < max_findings)
      list.push_back({finding.id, finding.subject.substr(0, max_bytes),
                      finding.message.substr(0, max_bytes), finding.fix.substr(0, max_bytes)});
  return json_line({{"code", static_cast<int>(code)}, {"findings", list}});
}

/// Adds the findings of another world; returns its exit code.
ExitCode read_world(const std::string& text, int world, Findings& to) {
  const nlohmann::json record = try_from_json_line(text);
  try {
    for (const nlohmann::json& finding : record.at("findings"))
      to.push_back({finding.at(0), Severity::error, finding.at(1),
                    fmt::format("world {} (local rank {}): {}", world, world,
                                finding.at(2).get<std::string>()),
                    finding.at(3)});
    return static_cast<ExitCode>(record.at("code").get<int>());
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::unavailable, fmt::format("PE 0 of world {}", world), "read its verdict",
                "malformed message", "run the same version of shmemctl on all hosts");
  }
}

/// The error, with a note that a PE has printed it, if one has.
Error printed_by_job(FailureDetector& failure_detector, Error error, bool own) {
  if (failure_detector.await_printed(own ? &error : nullptr))
    error.mark_printed();
  return error;
}

} // namespace

JobSession::JobSession(const Context& context, const Options& options)
    : context_(context), options_(options), report_(new_report(context, options)),
      output_(ReportTargets{}, report_), progress_(context) {
  output_.ask_before_ending([this](int signal, bool) {
    interrupted(signal);
    return false;
  });
}

void JobSession::watch_failure_detector(FailureDetector* failure_detector) {
  const std::lock_guard lock(failure_detector_mutex_);
  failure_detector_ = failure_detector;
}

/// A launcher ends all PEs when it has lost one. The report must then name the loss, although the
/// notice of it may arrive a little later than the signal.
void JobSession::interrupted(int signal) {
  const std::string interruption = "interrupted by " + signal_name(signal);
  const Error error(ExitCode::interrupted, "run", "finish", interruption, "run it again");
  const std::lock_guard lock(failure_detector_mutex_);
  if (!failure_detector_)
    return;
  try {
    failure_detector_->await_cause(-1);
    failure_detector_->announce(error, "");
  } catch (const Error& cause) {
    if (cause.code() != ExitCode::interrupted)
      failure_detector_->await_printed(nullptr); // this PE may be the one that prints it
    output_.blame(Error(ExitCode::interrupted, "run", "finish",
                        interruption + ", after this: " + cause.system_message(), cause.fix()));
  }
}

void JobSession::step(const std::string& name) {
  const double limit_s = options_.number("TIMEOUT") * slack_factor + slack_s;
  watchdog_.reset();
  watchdog_.emplace(std::chrono::duration<double>(limit_s),
                    [this, name](const std::string&) { expire(name); });
  progress_.say(name);
}

/// Why a step took too long. It may have many waits, of which the current one waits for a stopped
/// PE; otherwise a call hangs.
Error JobSession::why_late(const std::string& step_name) {
  constexpr double limit_s = 0.3;
  const Error hangs(ExitCode::deadline, step_name, "finish",
                    "timed out: a call into a library, a driver or a file system has not returned",
                    "pass a longer --timeout SECONDS, or check what this phase is waiting for");
  const std::lock_guard lock(failure_detector_mutex_);
  if (!failure_detector_)
    return hangs;
  try {
    for (int pe = 0; pe < report_.job.pes; ++pe)
      if (failure_detector_->presence(pe, limit_s) == Presence::silent)
        failure_detector_->give_up(step_name, pe); // throws with the known cause
  } catch (const Error& known) {
    return printed_by_job(*failure_detector_, known, false);
  }
  const bool first = failure_detector_->announce(hangs, step_name);
  return printed_by_job(*failure_detector_, hangs, first);
}

void JobSession::expire(const std::string& step_name) {
  const Error error = why_late(step_name);
  end_if_writing_hangs(error.code());
  print_error(error);
  died(error);
  std::_Exit(static_cast<int>(error.code())); // main hangs in a call that cannot be stopped
}

void JobSession::expect_to_lead() {
  try {
    output_.set_targets({context_.json_path, context_.csv_path, context_.force});
    expects_to_lead_ = true;
  } catch (const Error&) { // lead() reports it again
  }
  output_.tell_interruption(!context_.quiet);
  report_.job = {static_cast<int>(launched_size(context_.environment)), 0, "none",
                 launcher_name(context_.environment)};
  report_.hosts = nlohmann::json::array({{{"name", read_machine_identity(Sysroot()).host_name}}});
}

void JobSession::end_bring_up() {
  if (phases_ended_ || report_.phases.empty())
    return;
  phases_ended_ = true;
  end_phase();
  checkpoint();
}

void JobSession::end_phase() {
  const std::chrono::duration<double, std::milli> taken =
      std::chrono::steady_clock::now() - phase_start_;
  if (!report_.phases.empty())
    report_.phases.back().time_ms = taken.count();
}

void JobSession::enter_phase(const std::string& name) {
  end_phase();
  report_.phases.push_back({name, 0, 0});
  phase_start_ = std::chrono::steady_clock::now();
  checkpoint();
}

void JobSession::know_hosts(const Placement& placement) {
  report_.job.pes = placement.n_pes;
  report_.job.nodes = placement.n_nodes();
  report_.hosts = nlohmann::json::array();
  for (const HostPes& place : hosts_of_job(placement))
    report_.hosts.push_back(
        {{"name", placement.hosts[static_cast<std::size_t>(place.leader)].host_name},
         {"pes", place.pes},
         {"nodes", place.nodes}});
  checkpoint();
}

void JobSession::lead() {
  if (!expects_to_lead_)
    output_.set_targets({context_.json_path, context_.csv_path, context_.force});
  output_.tell_interruption(!context_.quiet);
  leads_ = true;
}

void JobSession::follow() {
  if (expects_to_lead_)
    output_.set_targets({});
  output_.tell_interruption(false);
  expects_to_lead_ = false;
}

bool JobSession::wants_text() const {
  return leads_ && !context_.quiet && context_.json_path != "-" && context_.csv_path != "-";
}

void JobSession::print_end() {
  const TextStyle style = text_style(context_, options_);
  if (const std::string findings = findings_text(report_.findings, style); !findings.empty())
    std::cout << findings << '\n';
  std::cout << summary_text(report_) << std::flush;
}

void JobSession::show_nics() const {
  if (!wants_text())
    return;
  const std::string text = job_nics_text(report_.hotspots, text_style(context_, options_));
  if (!text.empty())
    std::cout << text << '\n' << std::flush;
}

/// The worlds are independent, but the exit code is the job's, so it must be the same on all PEs.
ExitCode JobSession::join_worlds(ExitCode code) {
  Runtime* const runtime = runtime_.load();
  if (!runtime || !runtime->is_part_of_job())
    return code;
  step("gathering the verdicts of all worlds");
  const std::vector<std::string> texts = runtime->gather_text_of_job(
      runtime->pe() == 0 ? world_text(report_.findings, code) : std::string());
  int world = 0;
  for (const std::string& text : texts) {
    if (text.empty())
      continue; // a process that is not PE 0 of its world
    Findings findings;
    code = std::max(code, read_world(text, world, findings));
    if (leads_ && world > 0)
      report_.findings.insert(report_.findings.end(), findings.begin(), findings.end());
    ++world;
  }
  if (wants_text())
    std::cout << fmt::format("above: world 0 of {} (INIT_MODE=per-local-rank); of the others, what "
                             "is wrong\n\n",
                             world);
  return code;
}

/// Only PE 0 has findings. Those of severity error already influence `code`; PEs exchange results
/// only if --fail-on, which is the same on all PEs, is lower.
ExitCode JobSession::with_findings(ExitCode code) {
  Runtime* const runtime = runtime_.load();
  if (report_.fail_on == Severity::error || !runtime)
    return code;
  step("gathering what PE 0 found");
  const bool wrong = runtime->pe() == 0 && has_finding(report_.findings, report_.fail_on);
  for (const std::string& text : runtime->gather_text(wrong ? "found" : ""))
    if (!text.empty())
      code = std::max(code, ExitCode::finding);
  return code;
}

ExitCode JobSession::conclude(ExitCode code) {
  code = join_worlds(with_findings(code));
  report_.status = ReportStatus::complete;
  if (wants_text())
    print_end();
  else if (leads_)
    print_findings_without_text(context_, report_.findings, report_.fail_on);
  step("writing the report");
  report_.finished_at = utc_now();
  report_.exit_code = code;
  written_ = true;
  if (leads_)
    output_.finish(report_);
  return code;
}

void JobSession::died(const Error& error) {
  if (written_)
    return;
  try {
    output_.died(error);
  } catch (const Error& second) {
    print_error(second);
  }
}

void describe_job(Runtime& runtime, const Context& context, const Options& options,
                  Report& report) {
  const Placement& placement = runtime.placement();
  report.job = {
      placement.n_pes, placement.n_nodes(), runtime.bootstrap().name(), runtime.launcher(),
      SecretFilter(options)(launcher_command(Sysroot(), context.environment, context.argv))};
  report.phases = gather_phases(runtime);
  add_transport_choice(runtime.remote_choice(), report.findings);
  report.networks = gather_networks(runtime);
  if (context.json_path.empty())
    return;
  JobHosts hosts = gather_hosts(runtime, options);
  report.hosts = std::move(hosts.hosts);
  report.other_nodes = std::move(hosts.other_nodes);
  if (runtime.bootstrap().rank() != 0)
    return;
  const std::vector<int>& pes = placement.node_pes[static_cast<std::size_t>(placement.my_node())];
  const Mapping used = mapping_in_use(runtime.node(), runtime.nics(), pes.size());
  put_node(runtime.node(), numbered_by_job(used, pes), report);
}

std::vector<std::string> gpu_models(Runtime& runtime) {
  const PeGpu* const gpu = runtime.gpu();
  return runtime.gather_text(gpu ? gpu->info().name : std::string());
}

ExitCode with_job(Context& context, RuntimeRequest request, const JobBody& body) {
  const Options options = context.options();
  JobSession session(context, options);
  try {
    request.options = &options;
    request.environment = context.environment;
    request.announce = [&session, &context](const std::string& phase) {
      session.enter_phase(phase);
      session.step("bring-up, phase " + phase);
      context.reached_bootstrap = context.reached_bootstrap || phase == phase::bootstrap;
    };
    if (has_common_output(context.environment))
      request.print_error = print_error;
    request.failure_detector_changed = [&session](FailureDetector* failure_detector) {
      session.watch_failure_detector(failure_detector);
    };
    request.hosts_known = [&session](const Placement& placement) { session.know_hosts(placement); };
    if (launched_rank(context.environment) == 0)
      session.expect_to_lead();
    Runtime runtime(std::move(request));
    session.watch(&runtime);
    ExitCode code = ExitCode::ok;
    try {
      session.end_bring_up();
      // In a job of several worlds, only one PE prints, not the first PE of each world.
      if (runtime.bootstrap().rank() == 0)
        session.lead();
      else
        session.follow();
      code = body(session, runtime, options);
    } catch (const Error& error) {
      session.watch(nullptr);
      Error ending = error;
      if (runtime.fail(error))
        ending.mark_printed();
      throw ending;
    }
    session.step("leaving the job");
    session.watch(nullptr);
    runtime.finish();
    return code;
  } catch (const Error& error) {
    session.end_bring_up();
    session.died(error);
    throw;
  }
}

bool share_error(const Context& context, const Error& error) {
  const bool launcher_shares_it = launcher_name(context.environment) == "run";
  if (!context.runs_as_job || context.reached_bootstrap || launcher_shares_it)
    return false;
  return share_problem(context.environment, context.command_line, error, print_error);
}

void add_job_options(CLI::App& command, Context& context) {
  for (const char* name :
       {"BOOTSTRAP", "SYMMETRIC_SIZE", "TRANSPORT", "REMOTE_TRANSPORT", "IB_GID_INDEX", "IB_SL",
        "IB_TRAFFIC_CLASS", "IB_ATOMICS", "EMULATED_HCA_OVER", "LIBFABRIC_PROVIDER",
        "LIBFABRIC_PROFILE", "HEAP", "GPUS", "DEVICE_PATH"})
    add_option(command, context, name);
  // Options for the NICs that PEs use. World and PEs are those of the job, so they have no option.
  for (const std::string& name : mapping_option_names())
    if (name != "WORLD" && name != "PES_PER_NODE" && name != "GPUS" && name != "REMOTE_TRANSPORT")
      add_option(command, context, name);
}

} // namespace shmemctl
