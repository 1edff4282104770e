// The flags of `shmemctl moe`, and the meaning of their values.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/instruments/bench/moe/byte_count.h"
#include "src/instruments/bench/moe/call_start.h"
#include "src/instruments/bench/moe/measure.h"
#include "src/instruments/bench/moe/open_backend.h"
#include "src/instruments/bench/moe/request.h"

namespace shmemctl {

struct MoeFlags {
  moe::Request request;
  moe::Effort effort;
  std::string backend = "host", record, straggler, pin = "auto", unit = "GB/s";
  std::string dispatch_settings, combine_settings, count = "own";
  moe::CallStart start;
  bool no_verify = false, tune = false;

  moe::BackendKind kind() const {
    return backend == "gpu" ? moe::BackendKind::gpu : moe::BackendKind::host;
  }
};

void add_moe_flags(CLI::App& command, MoeFlags& flags);

/// Whether a command line of this program, from the subcommand on, is a moe run that continues
/// after it loses PEs.
bool moe_allows_loss(const std::vector<std::string>& words);

/// The error for invalid flags of moe.
Error bad_moe(const std::string& problem, const std::string& fix);
/// "2:500": PE 2, delayed by 500 us (moe::Effort::straggler). Throws Error (usage).
std::optional<std::pair<int, double>> straggler_flag(const std::string& text);
/// The settings that were given; throws Error (usage) for an invalid one.
moe::DirectionSettings settings_of(const MoeFlags& flags);

} // namespace shmemctl
