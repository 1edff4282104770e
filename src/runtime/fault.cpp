#include "src/runtime/fault.h"

#include <csignal>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr int fault_exit_code = 9;

std::optional<FaultKind> kind_of(const std::string& word) {
  if (word == "kill")
    return FaultKind::kill;
  if (word == "stop")
    return FaultKind::stop;
  if (word == "exit")
    return FaultKind::exit;
  if (word == "error")
    return FaultKind::error;
  if (word == "corrupt")
    return FaultKind::corrupt;
  if (word == "slow")
    return FaultKind::slow;
  return std::nullopt;
}

/// The rank that a launcher gave to this process; -1 if there is none.
int launched_rank() {
  const Environment environment = current_environment();
  for (const char* name : {"SHMEMCTL_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                           "SLURM_PROCID", "SHMEMCTL_BOOTSTRAP_UID_RANK"}) {
    const auto found = environment.find(name);
    if (found == environment.end())
      continue;
    if (const auto rank = parse_integer(found->second); rank && *rank >= 0 && *rank < 1 << 30)
      return static_cast<int>(*rank);
  }
  return -1;
}

} // namespace

std::optional<Fault> parse_fault(const std::string& text) {
  if (text.empty())
    return std::nullopt;
  const std::vector<std::string> parts = split(text, ':');
  const std::optional<FaultKind> kind = kind_of(parts[0]);
  const bool complete = parts.size() == 3;
  const std::optional<long long> pe = parse_integer(complete ? parts[1] : "");
  constexpr long long max_pes = 1 << 30;
  if (!complete || !kind || !pe || *pe < 0 || *pe >= max_pes || parts[2].empty())
    throw Error(ExitCode::usage, "SHMEMCTL_FAULT=" + text, "", "invalid fault",
                "unset it, or write kill:PE:PHASE, stop:PE:PHASE, exit:PE:PHASE, error:PE:PHASE, "
                "corrupt:PE:verify or slow:PE:fabric");
  return Fault{*kind, static_cast<int>(*pe), parts[2]};
}

bool is_fault(const Options& options, FaultKind kind, int pe, const std::string& phase) {
  const std::optional<Fault> fault = parse_fault(options.text("FAULT"));
  return fault && fault->kind == kind && fault->pe == pe && fault->phase == phase;
}

void inject_fault(const Options& options, int pe, const std::string& phase) {
  const std::optional<Fault> fault = parse_fault(options.text("FAULT"));
  if (!fault || fault->phase != phase || fault->pe != (pe >= 0 ? pe : launched_rank()))
    return;
  switch (fault->kind) {
  case FaultKind::kill:
    ::kill(::getpid(), SIGKILL);
    break;
  case FaultKind::stop:
    ::kill(::getpid(), SIGSTOP);
    break;
  case FaultKind::exit:
    ::_exit(fault_exit_code);
  case FaultKind::error:
    throw Error(ExitCode::unavailable, "SHMEMCTL_FAULT=" + options.text("FAULT"), "",
                "this PE was asked to fail", "unset it");
  case FaultKind::corrupt:
  case FaultKind::slow:
    break;
  }
}

} // namespace shmemctl
