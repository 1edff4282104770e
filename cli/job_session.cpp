#include "cli/job_session.h"

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <set>

#include "cli/session.h"
#include "reports/text.h"
#include "reports/text_hotspots.h"
#include "src/base/json_line.h"
#include "src/bringup/bringup.h"
#include "src/runtime/nic_choice.h"
#include "src/topo/mapping/mapping_json.h"
#include "src/topo/readers/reader.h"
#include "src/topo/writers/host_json.h"

namespace shmemctl {

namespace {

constexpr double slack_factor = 1.5;
constexpr double slack_s = 2;

/// Collective: one entry for each machine, described by its first PE.
nlohmann::json gather_hosts(Runtime& runtime, const Options& options) {
  const Placement& placement = runtime.placement();
  std::set<std::uint64_t> seen;
  std::set<int> speakers;
  for (int pe = 0; pe < placement.n_pes; ++pe)
    if (seen.insert(placement.hosts[static_cast<std::size_t>(pe)].machine_id).second)
      speakers.insert(pe);
  std::string mine;
  if (speakers.count(runtime.pe()) != 0) {
    const Sysroot sysroot;
    mine = json_line(host_json(read_machine(sysroot, options.text("NVML_LIBRARY")), &sysroot));
  }
  nlohmann::json hosts = nlohmann::json::array();
  for (const std::string& text : runtime.gather_text(mine))
    if (nlohmann::json host = try_from_json_line(text); host.is_object())
      hosts.push_back(std::move(host));
  return hosts;
}

} // namespace

JobSession::JobSession(const Context& context, const Options& options)
    : context_(context), options_(options), report_(new_report(context, options)),
      output_(ReportTargets{}, report_) {
  output_.ask_before_ending([this](int signal, bool) {
    interrupted(signal);
    return false;
  });
}

void JobSession::watch(Lifeline* lifeline) {
  const std::lock_guard lock(lifeline_mutex_);
  lifeline_ = lifeline;
}

/// A launcher ends all PEs when it has lost one: then the loss is what the report has to tell, and
/// its notice may come a little later than the signal.
void JobSession::interrupted(int signal) {
  const std::string words = std::string("interrupted by SIG") + ::sigabbrev_np(signal);
  Error error(ExitCode::interrupted, "the run", "finish", words, "start it again");
  const std::lock_guard lock(lifeline_mutex_);
  if (lifeline_)
    try {
      lifeline_->await_cause(-1);
      lifeline_->announce(error, "");
    } catch (const Error& cause) {
      error = Error(ExitCode::interrupted, "the run", "finish",
                    words + ", after this: " + cause.system_message(), cause.fix());
    }
  output_.blame(error);
}

void JobSession::step(const std::string& words) {
  const double limit_s = options_.number("TIMEOUT") * slack_factor + slack_s;
  watchdog_.reset();
  watchdog_.emplace(std::chrono::duration<double>(limit_s),
                    [this, words](const std::string&) { expire(words); });
}

void JobSession::expire(const std::string& words) {
  const Error error(ExitCode::deadline, words, "finish", "a call into a library or driver hangs",
                    "give more time with --timeout SECONDS, or look at what that step waits for");
  print_error(error);
  {
    const std::lock_guard lock(lifeline_mutex_);
    if (lifeline_)
      lifeline_->announce(error, words);
  }
  died(error);
  std::_Exit(static_cast<int>(ExitCode::deadline)); // main hangs in a call that cannot be stopped
}

void JobSession::lead() {
  output_.set_targets({context_.json_path, context_.csv_path, context_.force});
  leads_ = true;
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

ExitCode JobSession::conclude(ExitCode code) {
  report_.status = ReportStatus::complete;
  if (wants_text())
    print_end();
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
  report.job = {placement.n_pes, placement.n_nodes(), runtime.bootstrap().name(),
                runtime.launcher()};
  report.phases = gather_phases(runtime);
  add_transport_choice(runtime.remote_choice(), report.findings);
  if (context.json_path.empty())
    return;
  report.hosts = gather_hosts(runtime, options);
  if (runtime.pe() != 0)
    return;
  const std::vector<int>& pes = placement.node_pes[static_cast<std::size_t>(placement.my_node())];
  const Mapping used = mapping_in_use(runtime.node(), runtime.nics(), pes.size());
  put_node(runtime.node(), numbered_by_job(used, pes), report);
}

ExitCode with_job(Context& context, RuntimeRequest request, const JobBody& body) {
  const Options options = context.options();
  JobSession session(context, options);
  try {
    request.options = &options;
    request.environment = context.environment;
    request.announce = [&session](const std::string& phase) {
      session.step("bring-up, phase " + phase);
    };
    request.lifeline_changed = [&session](Lifeline* lifeline) { session.watch(lifeline); };
    Runtime runtime(std::move(request));
    ExitCode code = ExitCode::ok;
    try {
      if (runtime.pe() == 0)
        session.lead();
      code = body(session, runtime, options);
    } catch (const Error& error) {
      runtime.fail(error);
      throw;
    }
    session.step("leaving the job");
    runtime.finish();
    return code;
  } catch (const Error& error) {
    session.died(error);
    throw;
  }
}

void add_job_options(CLI::App& command, Context& context) {
  for (const char* name :
       {"BOOTSTRAP", "SYMMETRIC_SIZE", "TRANSPORT", "REMOTE_TRANSPORT", "IB_GID_INDEX", "IB_SL",
        "IB_TRAFFIC_CLASS", "IB_ATOMICS", "SOFT_HCA_OVER", "LIBFABRIC_PROVIDER",
        "LIBFABRIC_PROFILE", "HEAP", "GPUS", "DEVICE_PATH"})
    add_option(command, context, name);
}

} // namespace shmemctl
