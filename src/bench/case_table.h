// The groups of host cases, in the order of --list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reports/table.h"
#include "src/bench/case.h"

namespace shmemctl::bench {

std::vector<BenchCase> transfer_cases();
std::vector<BenchCase> pingpong_cases();
std::vector<BenchCase> atomic_cases();
std::vector<BenchCase> synchronisation_cases();
std::vector<BenchCase> collective_cases();
std::vector<BenchCase> proxy_cases();

/// CaseInfo::group of the cases whose reference is the same call without the proxy.
inline constexpr const char* proxy_group = "proxy";

template <class Kind>
BenchCase bench_case_of(CaseInfo info) {
  return {std::move(info), [](const Point& point) -> std::unique_ptr<Case> {
            return std::make_unique<Kind>(point);
          }};
}

std::vector<BenchCase> gpu_transfer_cases();
std::vector<BenchCase> gpu_pingpong_cases();
std::vector<BenchCase> gpu_atomic_cases();
std::vector<BenchCase> gpu_barrier_cases();
std::vector<BenchCase> gpu_collective_cases();

std::vector<BenchCase> stream_transfer_cases();
std::vector<BenchCase> stream_pingpong_cases();
std::vector<BenchCase> stream_barrier_cases();
std::vector<BenchCase> stream_collective_cases();

/// The same case by a stream.
inline BenchCase stream_case(BenchCase bench_case) {
  bench_case.info.initiator = Initiator::stream;
  bench_case.info.launch = {};
  return bench_case;
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

/// Every case by its group, under a heading for each initiator where there are several: name, what
/// its number means, what is in the timed loop and what is verified, who it can run between, and
/// the sizes of its sweep.
std::string list_text(const std::vector<BenchCase>& cases, const TextStyle& style);

/// The same for scripts: {"cases": [{"name", "initiator", "group", "metric", "measures", "how",
/// "sized", "min_bytes", "max_bytes", "element_bytes", "only_bytes", "traffics", "bidirectional",
/// "min_pes"}]}, and "launch" of kernels' cases.
nlohmann::json list_json(const std::vector<BenchCase>& cases);

} // namespace shmemctl::bench
