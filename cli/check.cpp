// `shmemctl check`: the node's acceptance test.
#include "cli/expect.h"
#include "cli/node_job.h"
#include "src/instruments/check/acceptance.h"

namespace shmemctl {

namespace {

/// Runs a part in this process, and adds its verdict over the findings that it added.
template <class Part>
void judge(Session& session, const std::string& id, const std::string& title, Part&& part) {
  const std::size_t before = session.report().findings.size();
  part();
  const Findings& all = session.report().findings;
  add_verdict(id, title, {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()},
              session.report());
  session.checkpoint();
}

/// A node with fewer than two GPUs has no links to judge.
void judge_links_if_any(Session& session, const NodeSource& source) {
  const std::size_t before = session.report().findings.size();
  if (!run_gpu_links(session, source))
    return;
  const Findings& all = session.report().findings;
  add_verdict("gpu-links", "measured copy bandwidth between every pair of GPUs",
              {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()}, session.report());
  session.checkpoint();
}

/// Returns the part's report.
Report run_job(const JobItem& item, Session& session, const Context& context) {
  session.phase(item.id + " (shmemctl " + item.arguments.at(0) + " ...)");
  std::vector<std::string> argv = item.arguments;
  argv.insert(argv.begin(), "shmemctl");
  Report part =
      absorb(item, run_child(own_program(), argv, job_environment(context), item.timeout_s),
             session.report());
  session.checkpoint();
  return part;
}

void run_jobs(Session& session, const Context& context) {
  std::optional<JobItem> by_gpus;
  for (const JobItem& item : acceptance_jobs()) {
    const Report part = run_job(item, session, context);
    if (!by_gpus)
      by_gpus = gpu_job_after(part);
  }
  if (by_gpus)
    run_job(*by_gpus, session, context);
}

} // namespace

void add_check(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Acceptance test of a node: topo, doctor, bring-up of 4 PEs, short benchmark sweeps (on "
      "its GPUs, too) and a MoE round trip");
  command->footer(
      "Prints a verdict for each part; takes 10 to 30 s. Exit code 1: a part failed. With\n"
      "--sysroot only topo and doctor run.\n"
      "Example: shmemctl check --json check.json");
  add_option(*command, context, "SYSROOT");
  add_mapping_flags(*command, context);
  auto expect = std::make_shared<ExpectFlags>();
  add_expect_flags(*command, expect);
  command->callback([&context, expect] {
    context.run = [expect](Context& run_context) {
      if (!expect->record.empty())
        return once_per_job(run_context, [&](Session& session, const Options&) {
          return record_node(session, run_context, expect->record);
        });
      return with_node_session(run_context, true, [&](Session& session, const Options& options) {
        const NodeSource source = session.load({});
        if (!expect->file.empty())
          judge(session, "expect", "what a node of this type must have",
                [&] { run_expectation(session, source, expect->file); });
        judge(session, "topo", "topology, and the NIC that each PE uses",
              [&] { run_topo(session, options, source); });
        judge(session, "doctor", "the preconditions",
              [&] { run_doctor(session, source, run_context.environment, {}, {}); });
        judge_links_if_any(session, source);
        if (source.sysroot->live())
          run_jobs(session, run_context);
        return session.finish();
      });
    };
  });
}

} // namespace shmemctl
