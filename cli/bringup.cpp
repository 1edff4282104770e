// `shmemctl bringup`: can every PE reach every other PE, and do its data arrive?
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/job_session.h"
#include "cli/session.h"
#include "reports/networks.h"
#include "reports/text.h"
#include "src/instruments/bringup/bringup.h"
#include "src/instruments/bringup/buffer_check.h"
#include "src/instruments/bringup/connections.h"
#include "src/runtime/transport_choice.h"

namespace shmemctl {

namespace {

std::string job_line(const Runtime& runtime) {
  const Placement& placement = runtime.placement();
  const auto counted = [](int count, const std::string& word) {
    return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
  };
  return counted(placement.n_pes, "PE") + " on " + counted(placement.n_nodes(), "node") + " (" +
         to_string(placement.distribution) +
         (placement.equal_pes_per_node ? "" : ", unequal PEs per node") + "), bootstrap " +
         runtime.bootstrap().name() + ", launcher " + runtime.launcher();
}

ExitCode bring_up(const Context& context, JobSession& session, Runtime& runtime,
                  const Options& options) {
  Report& report = session.report();
  session.step("gathering phases and hosts");
  describe_job(runtime, context, options, report);
  const Placement& placement = runtime.placement();
  const TextStyle style = text_style(context, options);
  const std::string beyond = to_text(runtime.remote_choice());
  if (session.wants_text())
    std::cout << phases_text(report.phases, style) << '\n'
              << job_line(runtime) << '\n'
              << (beyond.empty() ? "" : "to other nodes: " + safe_text(beyond) + "\n")
              << placement_text(placement) << '\n'
              << std::flush;
  session.checkpoint();

  session.step("gathering GPUs");
  GpuSummary gpus = gather_gpus(runtime);
  report.checks = gpus.rows;
  report.findings.insert(report.findings.end(), gpus.findings.begin(), gpus.findings.end());
  if (context.verbose && session.wants_text() && !runtime.gpu() && report.checks.empty())
    std::cout << "no GPUs: " << safe_text(runtime.no_gpu_reason()) << "\n\n";
  if (const std::string text = gpu_rows_text(report.checks); session.wants_text() && !text.empty())
    std::cout << text << '\n' << std::flush;

  report.connections =
      gather_connections(runtime, connections_message(runtime.transports(), runtime.n_pes()));
  report.connections.insert(report.connections.end(), gpus.connections.begin(),
                            gpus.connections.end());
  // In a job of several nodes, each connection would have its own line with its own address.
  const bool single = placement.n_nodes() == 1 || context.verbose;
  if (const std::string summary =
          networks_text(report.networks, node_names_of(report.hosts), style) +
          (single ? connections_for_people(report.connections) : std::string());
      session.wants_text() && !summary.empty())
    std::cout << summary << '\n' << std::flush;
  session.checkpoint();

  const std::size_t rows_before = report.results.size();
  const BringupVerdict verdict =
      check_all_pairs(runtime, options, gather_reach(runtime),
                      [&](const std::string& transport, int round, int rounds) {
                        session.step("checking pairs by " + transport + ", round " +
                                     std::to_string(round + 1) + " of " + std::to_string(rounds));
                        if (!session.leads())
                          return;
                        report.results.resize(rows_before);
                        add_unfinished(transport, round, rounds, report);
                        session.checkpoint_results();
                      });
  report.results.resize(rows_before);
  add_to_report(verdict, report);
  if (session.wants_text())
    std::cout << verdict_text(verdict, placement) << std::flush;
  session.checkpoint();

  session.step("checking registered buffers");
  const BufferVerdict buffers = check_registered_buffers(runtime, options);
  add_to_report(buffers, report);
  const ExitCode code = verdict.passed() && buffers.passed() ? ExitCode::ok : ExitCode::finding;
  if (session.wants_text()) {
    std::cout << buffers_line(buffers) << '\n';
    if (context.verbose)
      std::cout << results_text(report.results, style) << '\n';
  }
  return session.conclude(code);
}

} // namespace

void add_bringup(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "bringup",
      "Initialise a job phase by phase, then verify every pair of PEs on every transport");
  command->footer(
      "Every ordered pair of PEs does put, get, atomic fetch-add, compare-and-swap and\n"
      "put-with-signal on every transport that connects it and supports them; the PE that gets\n"
      "data verifies it. If every PE has a GPU, kernels do the same on the GPU heap. Then each PE\n"
      "registers a small buffer and puts into that of the next PE of its node, which\n"
      "verifies it.\n"
      "Exit code 1: a pair or a buffer failed, or a pair has no transport; 3: a PE was lost.\n"
      "Examples:\n"
      "  shmemctl run -n 4 bringup\n"
      "  mpirun -n 16 shmemctl bringup --json bringup.json\n"
      "  shmemctl run -n 4 --nodes 2 bringup --symmetric-size 64M");
  for (const char* name : {"INIT_MODE", "CHECK"})
    add_option(*command, context, name);
  add_job_options(*command, context);
  command->callback([&context] {
    context.run = [](Context& run_context) {
      RuntimeRequest request;
      request.require_reach = false; // bring_up() reports such pairs itself
      request.gpu = GpuUse::if_available;
      return with_job(run_context, std::move(request),
                      [&](JobSession& session, Runtime& runtime, const Options& options) {
                        return bring_up(run_context, session, runtime, options);
                      });
    };
  });
}

} // namespace shmemctl
