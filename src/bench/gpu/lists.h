// The groups of cases of kernels, in the order of --list.
#pragma once

#include <vector>

#include "src/bench/case.h"

namespace shmemctl::bench {

std::vector<CaseEntry> gpu_transfer_cases();
std::vector<CaseEntry> gpu_pingpong_cases();
std::vector<CaseEntry> gpu_atomic_cases();
std::vector<CaseEntry> gpu_meeting_cases();
std::vector<CaseEntry> gpu_collective_cases();

std::vector<CaseEntry> stream_transfer_cases();
std::vector<CaseEntry> stream_pingpong_cases();
std::vector<CaseEntry> stream_meeting_cases();
std::vector<CaseEntry> stream_collective_cases();

/// The same case by a stream.
inline CaseEntry on_stream_of(CaseEntry entry) {
  entry.info.initiator = Initiator::stream;
  entry.info.launch = {};
  return entry;
}

/// Calls of one thread, warp or block.
inline LaunchRules one_caller(CallScope by_default) {
  LaunchRules rules;
  rules.scopes = {by_default};
  for (const CallScope scope : {CallScope::thread, CallScope::warp, CallScope::block})
    if (scope != by_default)
      rules.scopes.push_back(scope);
  return rules;
}
/// All of a grid make calls: blocks by default, as many as saturate a link.
inline LaunchRules whole_grid(CallScope by_default) {
  LaunchRules rules = one_caller(by_default);
  rules.one_caller = false;
  rules.ctas = 32;
  rules.threads = 1024;
  return rules;
}

} // namespace shmemctl::bench
