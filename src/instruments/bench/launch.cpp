#include "src/instruments/bench/launch.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::bench {

namespace {

Error refused(const std::string& subject, const std::string& problem, const std::string& fix) {
  return Error(ExitCode::usage, subject, "", problem, fix).on_all_pes();
}

/// Number of threads of a block for one caller of this scope; 0: any number.
int threads_of(CallScope scope) {
  switch (scope) {
  case CallScope::thread:
    return 1;
  case CallScope::warp:
    return warp_threads;
  case CallScope::block:
    return 0;
  }
  return 0;
}

CallScope scope_of(const std::string& subject, const LaunchRules& rules,
                   const LaunchRequest& request) {
  if (!request.scope)
    return rules.scopes.front();
  if (std::find(rules.scopes.begin(), rules.scopes.end(), *request.scope) != rules.scopes.end())
    return *request.scope;
  std::vector<std::string> known;
  for (const CallScope scope : rules.scopes)
    known.emplace_back(to_string(scope));
  throw refused(subject, std::string("it has no calls of scope ") + to_string(*request.scope),
                "pass --scope " + join(known, " or ") + ", or omit --scope");
}

int threads_of(const std::string& subject, const LaunchRules& rules, const LaunchRequest& request,
               CallScope scope) {
  const int own = threads_of(scope);
  if (rules.one_caller && own != 0) {
    if (request.threads != 0 && request.threads != own)
      throw refused(subject,
                    "one " + std::string(to_string(scope)) +
                        " makes its calls, so --threads must be " + std::to_string(own),
                    "omit --threads, or pass --scope block if the case has it");
    return own;
  }
  const int threads = request.threads != 0 ? request.threads : rules.threads;
  if (scope == CallScope::warp && threads % warp_threads != 0)
    throw refused(subject, std::to_string(threads) + " threads are not a whole number of warps",
                  "pass --threads as a multiple of " + std::to_string(warp_threads));
  return threads;
}

} // namespace

const char* to_string(Initiator initiator) {
  switch (initiator) {
  case Initiator::host:
    return "host";
  case Initiator::stream:
    return "stream";
  case Initiator::gpu:
    return "gpu";
  }
  return "unknown";
}

const char* to_string(MemoryKind memory) {
  switch (memory) {
  case MemoryKind::host:
    return "host";
  case MemoryKind::gpu:
    return "gpu";
  case MemoryKind::registered:
    return "registered";
  }
  return "unknown";
}

const char* to_string(CallScope scope) {
  switch (scope) {
  case CallScope::thread:
    return "thread";
  case CallScope::warp:
    return "warp";
  case CallScope::block:
    return "block";
  }
  return "unknown";
}

MemoryKind check_launch(const LaunchRequest& request) {
  const bool on_gpu = request.initiator != Initiator::host;
  const MemoryKind memory = request.memory.value_or(on_gpu ? MemoryKind::gpu : MemoryKind::host);
  const std::string by = std::string("--initiator ") + to_string(request.initiator);
  if (on_gpu && memory != MemoryKind::gpu)
    throw refused("bench",
                  std::string("--memory ") + to_string(memory) + " cannot be combined with " + by +
                      ", which uses the GPU heap",
                  "omit --memory, or pass --initiator host");
  if (request.initiator != Initiator::gpu) {
    const char* flag = request.scope          ? "--scope"
                       : request.ctas != 0    ? "--ctas"
                       : request.threads != 0 ? "--threads"
                                              : nullptr;
    if (flag)
      throw refused("bench", std::string(flag) + " applies to kernels, so it needs --initiator gpu",
                    std::string("pass --initiator gpu, or omit ") + flag);
  }
  if (request.graph && request.initiator != Initiator::stream)
    throw refused("bench", "--graph applies to streams, so it needs --initiator stream",
                  "pass --initiator stream, or omit --graph");
  if (request.ctas < 0 || request.ctas > max_ctas)
    throw refused("bench",
                  "--ctas " + std::to_string(request.ctas) + " is not a valid number of blocks",
                  "pass 1 to " + std::to_string(max_ctas));
  if (request.threads < 0 || request.threads > max_threads)
    throw refused("bench",
                  "--threads " + std::to_string(request.threads) +
                      " is not a valid number of threads",
                  "pass 1 to " + std::to_string(max_threads));
  return memory;
}

Launch launch_of(const std::string& case_name, const LaunchRules& rules,
                 const LaunchRequest& request) {
  Launch launch;
  launch.initiator = request.initiator;
  launch.memory = check_launch(request);
  launch.graph = request.graph;
  if (request.initiator != Initiator::gpu || rules.scopes.empty())
    return launch;
  const std::string subject = "case " + case_name;
  launch.scope = scope_of(subject, rules, request);
  launch.threads = threads_of(subject, rules, request, launch.scope);
  if (rules.one_caller && request.ctas > 1)
    throw refused(subject, "one block makes all its calls, so --ctas must be 1", "omit --ctas");
  launch.ctas = rules.one_caller ? 1 : request.ctas != 0 ? request.ctas : rules.ctas;
  return launch;
}

} // namespace shmemctl::bench
