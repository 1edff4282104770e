// `check --expect` and `check --record-expect`: what a node of this type must have.
#pragma once

#include <memory>
#include <string>

#include "cli/session.h"

namespace shmemctl {

struct ExpectFlags {
  std::string file;   ///< --expect
  std::string record; ///< --record-expect
};
void add_expect_flags(CLI::App& command, const std::shared_ptr<ExpectFlags>& to);

/// Adds findings about the differences between the node and the file's expectation. Throws Error
/// (usage) for a file that cannot be read.
void run_expectation(Session& session, const NodeSource& source, const std::string& file);

/// Writes the description of this node to `file`, and reports that on stdout.
ExitCode record_node(Session& session, const Context& context, const std::string& file);

} // namespace shmemctl
