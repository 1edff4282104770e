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

/// Adds findings about what the node lacks or has otherwise than the file expects. Throws Error
/// (usage) for a file that cannot be read.
void run_expectation(Session& session, const NodeSource& source, const std::string& file);

/// Writes what this node has, and says so on stdout.
ExitCode record_node(Session& session, const Context& context, const std::string& file);

} // namespace shmemctl
