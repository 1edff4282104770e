#include "cli/expect.h"

#include <iostream>

#include "src/base/atomic_file.h"
#include "src/base/text.h"
#include "src/instruments/check/expectation.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

void add_expect_flags(CLI::App& command, const std::shared_ptr<ExpectFlags>& to) {
  CLI::Option* const expect =
      command
          .add_option("--expect", to->file,
                      "File of GPUs, NICs, rates, firmware, versions and link widths that this "
                      "node must have; a lack or difference is an error, an extra device a warning")
          ->type_name("FILE");
  command
      .add_option("--record-expect", to->record,
                  "Write a file for --expect from what this node has; check nothing")
      ->type_name("FILE")
      ->excludes(expect);
}

void run_expectation(Session& session, const NodeSource& source, const std::string& file) {
  session.phase("comparing the node with " + file);
  const Expectation expectation = parse_expectation(read_input(file), file);
  const nlohmann::json host = host_json(source.node, source.sysroot.get());
  for (Finding& finding : compare_with_expectation(expectation, source.node, host))
    session.report().findings.push_back(std::move(finding));
}

ExitCode record_node(Session& session, const Context& context, const std::string& file) {
  check_output_path(file, context.force);
  const NodeSource source = session.load({});
  const std::string text =
      record_expectation(source.node, host_json(source.node, source.sysroot.get()));
  write_file_atomically(file, text, context.force);
  const Expectation written = parse_expectation(text, file);
  if (file != "-" && session.wants_text())
    std::cout << "recorded " << counted(written.gpus->size(), "GPU") << ", "
              << counted(written.nics->size(), "RDMA NIC") << " and "
              << counted(written.versions.size(), "version") << " in " << file
              << "\ncompare a node with it: shmemctl check --expect " << file << "\n";
  return file == "-" ? ExitCode::ok : session.finish();
}

} // namespace shmemctl
