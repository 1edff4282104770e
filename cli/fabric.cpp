// `shmemctl fabric`: every pair of hosts, and which host, NIC, rail or pair is slow.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/job_session.h"
#include "cli/session.h"
#include "reports/networks.h"
#include "reports/text.h"
#include "src/base/finding.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/path.h"
#include "src/instruments/bench/pinning.h"
#include "src/instruments/bringup/bringup.h"
#include "src/instruments/bringup/connections.h"
#include "src/instruments/fabric/fabric.h"
#include "src/instruments/fabric/fabric_report.h"
#include "src/instruments/hotspots/job_watch.h"

namespace shmemctl {

namespace {

struct FabricFlags {
  fabric::Request request;
  std::string soak;
  std::string pin = "auto";
};

/// The duration of --soak. Throws Error (usage).
double soak_s(const std::string& text) {
  if (text.empty())
    return 0;
  const std::optional<double> seconds = parse_duration_s(text);
  constexpr double max_s = 30 * 86400;
  if (!seconds || *seconds < 1 || *seconds > max_s)
    throw Error(ExitCode::usage, "--soak " + text, "", "not a duration from 1 second to 30 days",
                "pass seconds, or a number with a unit, such as 90s, 30m, 8h or 2d")
        .on_all_pes();
  return *seconds;
}

/// The rows for the text output: without `verbose` it omits NICs, which are in this instrument's
/// own table, and pairs, which are in heat maps.
std::vector<ResultRow> rows_for_people(const std::vector<ResultRow>& all, bool verbose) {
  std::vector<ResultRow> rows;
  for (const ResultRow& row : all)
    if (verbose || (row.case_name != "fabric-nic" && row.case_name != "fabric-pair" &&
                    row.case_name != "fabric-latency"))
      rows.push_back(row);
  return rows;
}

ExitCode measure(const Context& context, const FabricFlags& flags, JobSession& session,
                 Runtime& runtime, const Options& options) {
  Report& report = session.report();
  session.step("gathering phases and hosts");
  describe_job(runtime, context, options, report);
  session.step("pinning PEs to cores");
  const bench::Pinning pinning(runtime, bench::parse_pin_choice(flags.pin));
  report.findings.insert(report.findings.end(), pinning.findings().begin(),
                         pinning.findings().end());
  report.connections =
      gather_connections(runtime, connections_message(bench::connections_in_use(runtime)));
  NicWatch nics(runtime, options);
  TextStyle style = text_style(context, options);
  if (session.wants_text())
    std::cout << placement_text(runtime.placement()) << '\n'
              << networks_text(report.networks, node_names_of(report.hosts), style) << '\n'
              << std::flush;
  fabric::Callbacks callbacks;
  callbacks.say = [&session](const std::string& words) { session.step(words); };
  callbacks.update = [&](const fabric::Result& so_far) {
    report.results = fabric::rows_of(so_far);
    session.checkpoint();
  };
  fabric::Result result = fabric::measure(runtime, options, flags.request, callbacks);
  result.shares_cores =
      std::any_of(pinning.findings().begin(), pinning.findings().end(),
                  [](const Finding& finding) { return finding.id == "bench-oversubscribed"; });
  session.step("gathering the NIC counters of all hosts");
  const bool nics_wrong = nics.end(report, false);
  session.step("gathering the verdict");
  bool wrong = false;
  if (runtime.pe() == 0) {
    report.results = fabric::rows_of(result);
    const Findings found = fabric::findings_of(result, report.hotspots);
    wrong = has_error(found);
    report.findings.insert(report.findings.end(), found.begin(), found.end());
  }
  if (session.wants_text()) {
    std::cout << fabric::summary_of(result, style) << '\n';
    if (const std::string rows =
            results_text(rows_for_people(report.results, context.verbose), style);
        !rows.empty())
      std::cout << rows << '\n';
    if (const std::string maps = heat_maps_text(report, style); !maps.empty())
      std::cout << maps << '\n';
    std::cout << std::flush;
  }
  session.show_nics();
  session.checkpoint();
  wrong = !runtime.gather_text(wrong ? "wrong" : "").front().empty();
  return session.conclude(wrong || nics_wrong ? ExitCode::finding : ExitCode::ok);
}

} // namespace

void add_fabric(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "fabric", "Measure every pair of hosts, and name the host, NIC, rail or pair that is slow");
  command->footer(
      "Start one PE per NIC (or GPU), in the same order on all hosts: PEs with the same local\n"
      "rank are on one rail. In rounds of disjoint pairs every host meets every other one: put\n"
      "bandwidth one way and the other, and latency. What is slower than its peers is measured\n"
      "again while few other pairs transfer; what stays slow is a finding. 1,024 hosts take two\n"
      "minutes of link time.\n"
      "Exit code 1: bandwidth is low, packets are lost or data is corrupt; 3: a PE was lost.\n"
      "Examples:\n"
      "  mpirun --map-by ppr:8:node -n 512 shmemctl fabric --json fabric.json\n"
      "  srun -N 64 --ntasks-per-node 1 shmemctl fabric --quick\n"
      "  mpirun -n 32 shmemctl fabric --patterns --soak 8h --json night.json\n"
      "  shmemctl run -n 4 --nodes 4 fabric --remote-transport libfabric\n"
      "  shmemctl report diff yesterday.json fabric.json");
  auto flags = std::make_shared<FabricFlags>();
  command->add_flag(
      "--cross-rail", flags->request.cross_rail,
      "Measure each PE with all PEs of every other host, not only with that of the same rail");
  command->add_flag("--quick", flags->request.quick,
                    "Measure each way of a pair for at most 10 ms, not 50 ms: faster, less exact");
  command
      ->add_option("--soak", flags->soak,
                   "Repeat the measurement for this long, 1 second to 30 days, such as 90s, 30m or "
                   "8h; findings of slow or lossy parts say in how many runs they occurred")
      ->type_name("DURATION");
  command->add_flag(
      "--patterns", flags->request.patterns,
      "Also measure incast and all-to-all, which show some faults that no pair shows");
  command
      ->add_option(
          "--pin", flags->pin,
          "Bind PEs to CPUs. auto (default): each to a core of its own, unless the "
          "launcher has done so; none; or a list with a CPU for each local rank, such as 0,2,4-7")
      ->type_name("CPUS");
  add_job_options(*command, context);
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      flags->request.soak_s = soak_s(flags->soak);
      bench::parse_pin_choice(flags->pin); // values are checked before anything is started
      return with_job(run_context, {},
                      [&](JobSession& session, Runtime& runtime, const Options& options) {
                        return measure(run_context, *flags, session, runtime, options);
                      });
    };
  });
}

} // namespace shmemctl
