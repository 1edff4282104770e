#include <algorithm>
#include <optional>

#include "src/base/error.h"
#include "src/base/pattern.h"
#include "src/base/text.h"
#include "src/bench/cases/lists.h"
#include "src/bench/gpu/lists.h"

namespace shmemctl::bench {

namespace {

bool any_matches(const std::vector<CaseEntry>& cases, const std::string& pattern) {
  return std::any_of(cases.begin(), cases.end(), [&](const CaseEntry& entry) {
    return matches_pattern(entry.info.name, pattern);
  });
}

/// For a pattern of which the cases of other flags have one: says which flags.
std::optional<Error> case_of_other_flags(const std::vector<CaseEntry>& cases,
                                         const std::string& pattern) {
  const Initiator own = cases.empty() ? Initiator::host : cases.front().info.initiator;
  std::string given = std::string("--initiator ") + to_string(own);
  std::vector<std::string> flags;
  for (const Initiator initiator : all_initiators) {
    if (!any_matches(cases_of(initiator, MemoryKind::host), pattern))
      continue;
    if (initiator == own) { // then the memory is what left it out
      given += " --memory gpu";
      flags.emplace_back("--memory host");
    } else {
      flags.push_back(std::string("--initiator ") + to_string(initiator));
    }
  }
  if (flags.empty())
    return std::nullopt;
  return Error(ExitCode::usage, "bench", "", "no case of " + given + " matches \"" + pattern + "\"",
               "pass " + join(flags, " or ") + "; shmemctl bench --list shows all cases");
}

Error no_such_case(const std::vector<CaseEntry>& cases, const std::string& pattern) {
  if (const auto elsewhere = case_of_other_flags(cases, pattern))
    return *elsewhere;
  std::vector<std::string> names, near;
  for (const CaseEntry& entry : cases)
    names.push_back(entry.info.name);
  if (const auto nearest = nearest_spelling(pattern, names))
    near.push_back(*nearest);
  for (const std::string& name : names)
    if (near.size() < 4 && pattern.size() >= 3 && name.find(pattern) != std::string::npos &&
        std::find(near.begin(), near.end(), name) == near.end())
      near.push_back(name);
  return {ExitCode::usage, "bench", "", "unknown case \"" + pattern + "\"",
          near.empty()
              ? "run shmemctl bench --list; * and ? match any text and any character"
              : "did you mean " + join(near, " or ") + "? shmemctl bench --list shows all cases"};
}

} // namespace

const char* to_string(Metric metric) {
  switch (metric) {
  case Metric::latency:
    return "latency";
  case Metric::bandwidth:
    return "bandwidth";
  case Metric::rate:
    return "rate";
  }
  return "unknown";
}

const char* to_string(Traffic traffic) {
  switch (traffic) {
  case Traffic::pair:
    return "pair";
  case Traffic::pairs:
    return "pairs";
  case Traffic::all_to_all:
    return "all-to-all";
  case Traffic::collective:
    return "collective";
  }
  return "unknown";
}

const char* to_string(Direction direction) {
  return direction == Direction::uni ? "uni" : "bi";
}

std::vector<CaseEntry> host_cases() {
  std::vector<CaseEntry> all;
  for (auto&& group : {transfer_cases(), pingpong_cases(), atomic_cases(), synchronisation_cases(),
                       collective_cases(), proxy_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<CaseEntry> gpu_cases() {
  std::vector<CaseEntry> all;
  for (auto&& group : {gpu_transfer_cases(), gpu_pingpong_cases(), gpu_atomic_cases(),
                       gpu_meeting_cases(), gpu_collective_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<CaseEntry> stream_cases() {
  std::vector<CaseEntry> all;
  for (auto&& group : {stream_transfer_cases(), stream_pingpong_cases(), stream_meeting_cases(),
                       stream_collective_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<CaseEntry> cases_of(Initiator initiator, MemoryKind memory) {
  if (initiator == Initiator::gpu)
    return gpu_cases();
  if (initiator == Initiator::stream)
    return stream_cases();
  std::vector<CaseEntry> all = host_cases();
  if (memory == MemoryKind::gpu)
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const CaseEntry& entry) { return !entry.info.on_gpu_memory; }),
              all.end());
  return all;
}

std::vector<CaseEntry> choose_cases(const std::vector<CaseEntry>& cases,
                                    const std::vector<std::string>& patterns) {
  std::vector<bool> chosen(cases.size(), false);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (pattern == "all" || matches_pattern(cases[i].info.name, pattern))
        any = chosen[i] = true;
    if (!any)
      throw no_such_case(cases, pattern);
  }
  std::vector<CaseEntry> result;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (chosen[i])
      result.push_back(cases[i]);
  return result;
}

} // namespace shmemctl::bench
