#include "cli/session.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

#include "cli/terminal.h"
#include "reports/text.h"
#include "src/base/file_tree.h"
#include "src/base/finding.h"
#include "src/base/options.h"
#include "src/base/recorded_variables.h"
#include "src/base/secret_filter.h"
#include "src/base/text.h"
#include "src/base/watchdog.h"
#include "src/base/zstd.h"
#include "src/instruments/check/gpu_links.h"
#include "src/instruments/doctor/doctor.h"
#include "src/instruments/doctor/gpu_links.h"
#include "src/instruments/doctor/host_facts.h"
#include "src/instruments/doctor/support.h"
#include "src/instruments/gather/gather.h"
#include "src/model/topo/advice/advice.h"
#include "src/model/topo/mapping/mapping_json.h"
#include "src/model/topo/mapping/ports.h"
#include "src/model/topo/mapping/request.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_line_bytes = 2000;

std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text + " s";
}

/// The node of a recorded tree.
Node node_under(const Sysroot& sysroot) {
  const std::optional<Node> recorded = gather::recorded_node(sysroot);
  return recorded ? *recorded : read_machine(sysroot);
}

} // namespace

Report new_report(const Context& context, const Options& options) {
  Report report;
  report.started_at = utc_now();
  report.command = SecretFilter(options)(context.argv);
  report.env = recorded_environment(context.environment, options);
  report.fail_on = parse_severity(lower(options.text("FAIL_ON"))).value_or(Severity::error);
  return report;
}

TextStyle text_style(const Context& context, const Options& options) {
  auto variable = [&context](const char* name) {
    const auto found = context.environment.find(name);
    return found == context.environment.end() ? std::string() : found->second;
  };
  TextStyle style;
  style.color = wants_color(options.text("COLOR"), context.environment);
  style.verbose = context.verbose;
  style.width = terminal_width(context.environment);
  std::string locale = variable("LC_ALL");
  if (locale.empty())
    locale = variable("LC_CTYPE");
  if (locale.empty())
    locale = variable("LANG");
  style.utf8 = lower(locale).find("utf") != std::string::npos;
  return style;
}

void print_findings_without_text(const Context& context, const Findings& findings,
                                 Severity fail_on) {
  if (!context.quiet && context.csv_path != "-")
    return;
  const Severity least = std::min(context.quiet ? Severity::error : Severity::warning, fail_on);
  std::string text;
  for (const Finding& finding : findings)
    if (finding.severity >= least)
      text += std::string("shmemctl: ") + to_string(finding.severity) + ": " +
              printable(finding.id + ": " + finding.message, max_line_bytes) +
              "\nshmemctl: fix: " + printable(finding.fix, max_line_bytes) + "\n";
  std::cerr << text << std::flush;
}

Session::Session(const Context& context, const Options& options)
    : context_(context), options_(options), report_(new_report(context, options)),
      output_({context.json_path, context.csv_path, context.force}, report_), progress_(context),
      deadline_s_(options.number("TIMEOUT")) {
  output_.tell_interruption(!context.quiet);
  set_deadline(deadline_s_);
}

void Session::set_deadline(std::optional<double> seconds) {
  watchdog_.reset();
  if (!seconds)
    return;
  deadline_s_ = *seconds;
  watchdog_.emplace(std::chrono::duration<double>(*seconds),
                    [this](const std::string& phase) { expire(phase); });
}

void Session::expire(const std::string& phase) {
  const Error error(ExitCode::deadline, phase, "finish",
                    "timed out after " + seconds_text(deadline_s_) + ", the limit of the whole run",
                    "pass a longer --timeout SECONDS, or check what this phase is waiting for");
  end_if_writing_hangs(ExitCode::deadline);
  print_error(error);
  try {
    output_.died(error);
  } catch (const Error& second) {
    print_error(second);
  }
  std::_Exit(static_cast<int>(ExitCode::deadline)); // main hangs in a call that cannot be stopped
}

bool Session::wants_text() const {
  return !context_.quiet && !deferred_ && context_.json_path != "-" && context_.csv_path != "-";
}

NodeSource Session::load(const SourceFlags& flags) {
  NodeSource source;
  if (!flags.from.empty()) {
    phase("reading " + flags.from);
    const std::string bytes = read_input(flags.from);
    if (is_zstd(bytes)) {
      source.sysroot = std::make_unique<Sysroot>(
          std::make_shared<const FileTree>(read_archive(bytes, flags.from)), flags.from);
      source.node = node_under(*source.sysroot);
      return source;
    }
    std::optional<TopoFormat> format;
    if (!flags.format.empty())
      format = parse_topo_format(flags.format);
    source.node = read_recorded(bytes, flags.from, format);
    return source;
  }
  const std::string root = options_.text("SYSROOT");
  source.sysroot = std::make_unique<Sysroot>(root.empty() ? "/" : root);
  phase("reading the machine under " + source.sysroot->root());
  source.node = source.sysroot->live()
                    ? read_machine(*source.sysroot, options_.text("NVML_LIBRARY"))
                    : node_under(*source.sysroot);
  return source;
}

ExitCode Session::end(ReportStatus status, ExitCode code) {
  report_.finished_at = utc_now();
  report_.status = status;
  report_.exit_code = code;
  if (deferred_) {
    checkpoint();
    return code;
  }
  if (wants_text())
    write_text(std::cout, report_, text_style(context_, options_));
  else
    print_findings_without_text(context_, report_.findings, report_.fail_on);
  output_.finish(report_);
  return code;
}

ExitCode Session::finish(ExitCode otherwise) {
  return end(ReportStatus::complete,
             has_finding(report_.findings, report_.fail_on) ? ExitCode::finding : otherwise);
}

ExitCode Session::finish_early(ExitCode code) {
  return end(ReportStatus::incomplete, code);
}

ExitCode with_session(Context& context,
                      const std::function<ExitCode(Session&, const Options&)>& body) {
  const Options options = context.options();
  Session session(context, options);
  try {
    return body(session, options);
  } catch (const Error& error) {
    try {
      session.output().died(error);
    } catch (const Error& second) { // the first error is the one that matters
      print_error(second);
    }
    throw;
  }
}

ExitCode with_bootstrap(Context context, const std::function<ExitCode(BootstrapSession)>& body) {
  const Context given = context;
  // Which process is PE 0 is known only later.
  context.json_path.clear();
  context.csv_path.clear();
  context.quiet = true;
  return with_session(context, [&](Session& session, const Options& options) {
    session.phase("opening the bootstrap");
    BootstrapRequest request;
    request.options = &options;
    request.environment = context.environment;
    const std::unique_ptr<Bootstrap> bootstrap =
        open_bootstrap(std::move(request),
                       Deadline::after(std::chrono::duration<double>(options.number("TIMEOUT"))));
    if (bootstrap->rank() == 0) {
      context.json_path = given.json_path;
      context.csv_path = given.csv_path;
      context.quiet = given.quiet;
      session.output().set_targets({given.json_path, given.csv_path, given.force});
    }
    return body({session, context, options, *bootstrap});
  });
}

nlohmann::json described_host(const Node& node, const Sysroot* sysroot) {
  nlohmann::json host = host_json(node, sysroot);
  if (sysroot != nullptr)
    host["facts"] = read_host_facts(node, *sysroot).facts;
  return host;
}

void put_node(const Node& node, const Mapping& mapping, Report& report) {
  report.topology = topology_json(node);
  report.mapping =
      mapping_json(node, mapping, advise(node, map_nics(node, optimal_request(mapping.request))));
}

MappingRequest mapping_request(const Options& options, const NodeSource& source) {
  MappingRequest request = mapping_request(options, source.node);
  if (!source.sysroot || !options.text("NVSHMEM_VERSION").empty())
    return request;
  const auto recorded = gather::recorded_nvshmem(*source.sysroot);
  if (!recorded)
    return request;
  NvshmemSettings& settings = request.nvshmem;
  if (recorded->release) {
    const auto [major, minor, patch] = *recorded->release;
    settings.version = {major, minor, patch};
    settings.version_source = recorded->origin;
  } else {
    settings.version_source =
        "the default: several are recorded, " + recorded->origin + "; --nvshmem-version chooses";
  }
  return request;
}

void run_topo(Session& session, const Options& options, const NodeSource& source) {
  const Node& node = source.node;
  session.phase("mapping PEs to NICs");
  const Mapping mapping = map_nics(node, mapping_request(options, source));
  Report& report = session.report();
  report.job.pes = static_cast<int>(mapping.pes.size());
  report.hosts = nlohmann::json::array({described_host(node, source.sysroot.get())});
  put_node(node, mapping, report);
  for (const Findings& findings : {check_node(node), check_mapping(node, mapping)})
    report.findings.insert(report.findings.end(), findings.begin(), findings.end());
  session.checkpoint();
}

bool run_gpu_links(Session& session, const NodeSource& source) {
  const std::vector<Gpu>& gpus = source.node.gpus;
  const auto count = std::count_if(gpus.begin(), gpus.end(),
                                   [](const Gpu& gpu) { return gpu.vendor == "nvidia"; });
  if (!source.sysroot || !source.sysroot->live() || count < 2)
    return false;
  session.phase("measuring copies between GPUs");
  constexpr std::chrono::seconds deadline{
      40}; // contexts of eight GPUs without persistence take ten seconds
  const cuda::LinkSurvey survey = doctor::survey_live_links(deadline);
  Report& report = session.report();
  for (ResultRow& row : link_rows(source.node, survey))
    report.results.push_back(std::move(row));
  for (Finding& finding : judge_links(source.node, survey))
    report.findings.push_back(std::move(finding));
  session.checkpoint();
  return true;
}

namespace {

/// A check's result; for a recorded node, the result that was recorded on the machine itself, which
/// can be examined in more ways than its files.
CheckResult result_of(const CheckOutcome& outcome,
                      const std::optional<gather::LiveResults>& recorded) {
  if (recorded)
    if (const auto there = recorded->checks.find(outcome.check->id);
        there != recorded->checks.end()) {
      CheckResult result = there->second;
      result.fix = doctor::fix_from_record(result.fix);
      return result;
    }
  return outcome.result;
}

bool is_finding(const CheckResult& result) {
  return result.status == CheckStatus::fail || result.status == CheckStatus::warning;
}

Finding finding_of(const Check& check, const CheckResult& result) {
  return {check.id, result.status == CheckStatus::fail ? Severity::error : Severity::warning,
          check.title, result.reason, result.fix};
}

} // namespace

void add_redirects(Session& session, const NodeSource& source, const Environment& environment) {
  if (!source.sysroot)
    return;
  session.phase("reading the bridges between devices");
  const auto recorded = gather::recorded_results(*source.sysroot);
  const CheckContext context{*source.sysroot, source.node, environment};
  for (const CheckOutcome& outcome : run_checks(context, {"pcie-acs"}, {}))
    if (const CheckResult result = result_of(outcome, recorded); is_finding(result))
      session.report().findings.push_back(finding_of(*outcome.check, result));
  session.checkpoint();
}

void run_doctor(Session& session, const NodeSource& source, const Environment& environment,
                const std::vector<std::string>& only, const std::vector<std::string>& skip,
                const KernelLogText* kernel_log, const std::string& python) {
  const auto recorded = gather::recorded_results(*source.sysroot);
  const CheckContext context{*source.sysroot, source.node,
                             recorded ? recorded->environment : environment, kernel_log, python};
  Report& report = session.report();
  if (report.hosts.empty())
    report.hosts = nlohmann::json::array({described_host(source.node, source.sysroot.get())});
  const auto keep = [&](const CheckOutcome& outcome) {
    const Check& check = *outcome.check;
    // An explicitly named log is newer than the recorded results about the kernel log.
    const bool newer = kernel_log != nullptr && check.group == "kernel-log";
    const CheckResult result = newer ? outcome.result : result_of(outcome, recorded);
    report.checks.push_back({check.id, check.title, to_string(result.status), result.reason,
                             result.evidence, result.fix, check.group, std::nullopt,
                             outcome.time_s});
    if (is_finding(result))
      report.findings.push_back(finding_of(check, result));
    session.checkpoint();
  };
  run_checks(context, only, skip, keep,
             [&](const Check& check) { session.phase("doctor's check " + check.id); });
}

void add_source_flags(CLI::App& command, Context& context, const std::shared_ptr<SourceFlags>& to) {
  CLI::Option* const from =
      command
          .add_option(
              "--from", to->from,
              "Read a recorded node: an archive of shmemctl gather, hwloc XML, NCCL topology "
              "XML, the output of nvidia-smi topo -m, or a shmemctl report; - is stdin")
          ->type_name("FILE");
  command.add_option("--format", to->format, "Format of the file of --from (default: detected)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"hwloc-xml", "nccl-xml", "nvidia-smi", "report"}));
  add_option(command, context, "SYSROOT")->excludes(from);
}

void add_archive_flags(CLI::App& command, Context& context,
                       const std::shared_ptr<SourceFlags>& to) {
  CLI::Option* const from =
      command.add_option("--from", to->from, "Read an archive of shmemctl gather; - is stdin")
          ->type_name("FILE");
  add_option(command, context, "SYSROOT")->excludes(from);
}

void require_files(const NodeSource& source, const SourceFlags& flags) {
  if (!source.sysroot)
    throw Error(
        ExitCode::usage, flags.from, "", "not an archive of shmemctl gather",
        "record the node with shmemctl gather -o node.tar.zst, or pass a copy of its /sys and "
        "/proc with --sysroot");
}

void add_mapping_flags(CLI::App& command, Context& context) {
  for (const std::string& name : mapping_option_names())
    add_option(command, context, name);
}

} // namespace shmemctl
