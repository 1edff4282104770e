// The groups of host cases, in the order of --list.
#pragma once

#include <memory>
#include <vector>

#include "src/bench/case.h"

namespace shmemctl::bench {

std::vector<CaseEntry> transfer_cases();
std::vector<CaseEntry> pingpong_cases();
std::vector<CaseEntry> atomic_cases();
std::vector<CaseEntry> synchronisation_cases();
std::vector<CaseEntry> collective_cases();
std::vector<CaseEntry> proxy_cases();

/// CaseInfo::group of the cases whose reference is the same call without the proxy.
inline constexpr const char* proxy_group = "proxy";

template <class Kind>
CaseEntry entry_of(CaseInfo info) {
  return {std::move(info), [](const Point& point) -> std::unique_ptr<Case> {
            return std::make_unique<Kind>(point);
          }};
}

} // namespace shmemctl::bench
