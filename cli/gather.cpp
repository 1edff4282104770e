// `shmemctl gather`: a node as an archive, which topo, doctor, inspect, sim and explain read.
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <string>

#include "cli/session.h"
#include "src/base/atomic_file.h"
#include "src/base/error.h"
#include "src/base/file_tree.h"
#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/gather/gather.h"

namespace shmemctl {

namespace {

struct GatherFlags {
  std::string output;
  bool keep_names = false;
};

void print_summary(const gather::Gathered& gathered, const GatherFlags& flags) {
  std::cout << fmt::format(
      "{}: {} of the node and of {}, {}\n", flags.output, counted(gathered.files, "file"),
      gathered.processes == 1 ? "1 process" : fmt::format("{} processes", gathered.processes),
      counted(gathered.archive.size(), "byte"));
  std::cout << (flags.keep_names
                    ? "names, addresses and command lines are in it as they are\n"
                    : "names of hosts and users, GUIDs, MAC and IP addresses and command lines are "
                      "replaced\n");
  if (gathered.results > 0)
    std::cout << fmt::format(
        "{} of doctor and inspect, which only this machine can have, {} in it\n",
        counted(gathered.results, "result"), gathered.results == 1 ? "is" : "are");
  if (!gathered.left_out.empty())
    std::cout << fmt::format("left out because of the archive's limits: {} ({}, ...)\n",
                             counted(gathered.left_out.size(), "path"),
                             printable(gathered.left_out.front()));
  std::cout << fmt::format(
      "look at it: shmemctl doctor --from {0}; everything in it: tar --zstd -tf "
      "{0}\n\n",
      flags.output);
}

ExitCode run_gather(Session& session, const Context& context, const Options& options,
                    const GatherFlags& flags) {
  check_output_path(flags.output, context.force);
  const std::string root = options.text("SYSROOT");
  const Sysroot sysroot(root.empty() ? "/" : root);
  const gather::Gathered gathered =
      gather::gather(sysroot, {flags.keep_names, context.environment, options.text("NVML_LIBRARY")},
                     [&session](const std::string& words) { session.phase(words); });
  if (gathered.archive.size() > archive_limits::max_packed_bytes)
    throw Error(ExitCode::unavailable, flags.output, "write",
                fmt::format("the archive has {}, more than the limit of {}B",
                            counted(gathered.archive.size(), "byte"),
                            format_size_bytes(archive_limits::max_packed_bytes)),
                "record the node while fewer processes run");
  session.phase("writing " + flags.output);
  write_file_atomically(flags.output, gathered.archive, context.force);
  if (session.wants_text())
    print_summary(gathered, flags);
  return session.finish();
}

} // namespace

void add_gather(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("gather", "Record this node in an archive, which topo, doctor, inspect, "
                                   "sim and explain read with --from");
  command->footer("Runs doctor's checks and inspect --all, and records their results and the files "
                  "that topo,\ndoctor and inspect read, and no others. Names of hosts and users, "
                  "GUIDs, MAC and IP addresses are replaced by\n"
                  "others, the same ones throughout, and command lines by the program's name.\n"
                  "Examples:\n"
                  "  shmemctl gather -o node.tar.zst\n"
                  "  shmemctl gather -o node.tar.zst --keep-names\n"
                  "  shmemctl doctor --from node.tar.zst");
  auto flags = std::make_shared<GatherFlags>();
  command
      ->add_option("-o,--output", flags->output,
                   "Write the archive to this file, atomically; - is stdout")
      ->type_name("FILE")
      ->required();
  command->add_flag("--keep-names", flags->keep_names,
                    "Keep the names, addresses and command lines of this machine in the archive "
                    "instead of replacing them");
  add_option(*command, context, "SYSROOT");
  command->callback([&context, flags] {
    context.run = [flags](Context& run_context) {
      if (flags->output == "-")
        run_context.quiet = true; // stdout carries the archive
      return with_session(run_context, [&](Session& session, const Options& options) {
        return run_gather(session, run_context, options, *flags);
      });
    };
  });
}

} // namespace shmemctl
