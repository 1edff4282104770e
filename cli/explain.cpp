// `shmemctl explain`: what logs of communication libraries mean, and how to fix the problems in
// them.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/session.h"
#include "src/base/error.h"
#include "src/base/input.h"
#include "src/instruments/explain/catalogue.h"
#include "src/instruments/explain/explanation.h"
#include "src/instruments/explain/log_scan.h"
#include "src/model/topo/mapping/request.h"

namespace shmemctl {

namespace {

struct ExplainFlags {
  std::vector<std::string> files;
  std::string catalogue;
};

explain::Catalogue read_catalogue(const std::string& file) {
  explain::Catalogue catalogue;
  catalogue.add(explain::log_messages_text(), "built-in log messages");
  if (!file.empty())
    catalogue.add(read_input(file), file);
  return catalogue;
}

/// Whether a rank of the log ran on this machine: then the log is compared with its topology.
bool names_this_host(const explain::LogFacts& facts) {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0)
    return false;
  name.resize(name.find('\0'));
  const auto without_domain = [](const std::string& host) {
    return host.substr(0, host.find('.'));
  };
  for (const explain::RankLog& rank : facts.ranks)
    if (!rank.host.empty() && without_domain(rank.host) == without_domain(name))
      return true;
  return false;
}

ExitCode run_explain(Session& session, const Options& options, const ExplainFlags& flags,
                     const SourceFlags& source) {
  std::vector<std::string> files = flags.files;
  if (files.empty())
    files.emplace_back("-");
  int from_stdin = source.from == "-" ? 1 : 0;
  for (const std::string& file : files)
    from_stdin += file == "-" ? 1 : 0;
  if (from_stdin > 1)
    throw Error(ExitCode::usage, "stdin", "",
                "it is named more than once, but can be read only once",
                "pass - once, and files for the other inputs");
  const explain::Catalogue catalogue = read_catalogue(flags.catalogue);
  if (from_stdin > 0)
    session.set_deadline(std::nullopt); // the job that writes the log may run for days
  explain::LogScan scan(catalogue);
  std::uint64_t lines = 0;
  for (const std::string& file : files) {
    session.phase("reading " + (file == "-" ? "stdin" : file));
    scan.scan_file(file);
  }
  const explain::LogFacts facts = scan.facts();
  for (const explain::LogFile& file : facts.files)
    lines += file.lines;
  if (lines == 0)
    throw Error(
        ExitCode::usage, facts.files.front().name, "", "the log is empty",
        "pass what the job wrote to stdout and stderr, or the file that NCCL_DEBUG_FILE names");
  std::optional<NodeSource> node;
  if (!source.from.empty() || !options.text("SYSROOT").empty() || names_this_host(facts))
    node = session.load(source);
  session.phase("explaining");
  Report& report = session.report();
  const Node* const compared = node ? &node->node : nullptr;
  report.logs = explain::to_json(facts, catalogue, compared);
  report.findings = explain::findings_of(facts, catalogue, compared, nvshmem_settings(options));
  return session.finish();
}

} // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "explain", "Explain logs: what each rank chose, what failed, why, and what to do");
  command->footer(
      "Reads logs of NVSHMEM (NVSHMEM_DEBUG=INFO), NCCL (NCCL_DEBUG=INFO), UCX, libfabric, Open\n"
      "MPI, DeepEP and PyTorch, of one rank or of many in one file (mpirun --tag-output,\n"
      "srun --label, torchrun). Shows which NIC, port, GID and transport each rank chose, and for\n"
      "each known error its cause and fix; an unknown one is shown as unknown. NICs are compared\n"
      "with --from or --sysroot or, if a rank of the log ran here, with this machine.\n"
      "Exit code 1: there is an error in the log.\n"
      "Examples:\n"
      "  shmemctl explain job.log\n"
      "  shmemctl explain logs/rank*.log --from node.xml --json why.json\n"
      "  mpirun --tag-output -n 16 ./job 2>&1 | tee job.log | shmemctl explain\n"
      "  shmemctl explain --catalogue ours.conf job.log");
  auto source = std::make_shared<SourceFlags>();
  auto flags = std::make_shared<ExplainFlags>();
  command->add_option("files", flags->files,
                      "Log files; - is stdin, which is also read if no file is given");
  command
      ->add_option(
          "--catalogue", flags->catalogue,
          "Look for the messages of this file as well as for those of the built-in catalogue")
      ->type_name("FILE");
  add_source_flags(*command, context, source);
  command->callback([&context, source, flags] {
    context.run = [source, flags](Context& run_context) {
      return with_session(run_context, [&](Session& session, const Options& options) {
        return run_explain(session, options, *flags, *source);
      });
    };
  });
}

} // namespace shmemctl
