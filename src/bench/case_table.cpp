#include "src/bench/case_table.h"

#include <algorithm>
#include <optional>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl::bench {

namespace {

bool any_matches(const std::vector<BenchCase>& cases, const std::string& pattern) {
  return std::any_of(cases.begin(), cases.end(), [&](const BenchCase& bench_case) {
    return matches_pattern(bench_case.info.name, pattern);
  });
}

/// For a pattern of which the cases of other flags have one: says which flags.
std::optional<Error> case_of_other_flags(const std::vector<BenchCase>& cases,
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

Error no_such_case(const std::vector<BenchCase>& cases, const std::string& pattern) {
  if (const auto elsewhere = case_of_other_flags(cases, pattern))
    return *elsewhere;
  std::vector<std::string> names, near;
  for (const BenchCase& bench_case : cases)
    names.push_back(bench_case.info.name);
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

std::vector<BenchCase> host_cases() {
  std::vector<BenchCase> all;
  for (auto&& group : {transfer_cases(), pingpong_cases(), atomic_cases(), synchronisation_cases(),
                       collective_cases(), proxy_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<BenchCase> gpu_cases() {
  std::vector<BenchCase> all;
  for (auto&& group : {gpu_transfer_cases(), gpu_pingpong_cases(), gpu_atomic_cases(),
                       gpu_barrier_cases(), gpu_collective_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<BenchCase> stream_cases() {
  std::vector<BenchCase> all;
  for (auto&& group : {stream_transfer_cases(), stream_pingpong_cases(), stream_barrier_cases(),
                       stream_collective_cases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<BenchCase> cases_of(Initiator initiator, MemoryKind memory) {
  if (initiator == Initiator::gpu)
    return gpu_cases();
  if (initiator == Initiator::stream)
    return stream_cases();
  std::vector<BenchCase> all = host_cases();
  if (memory == MemoryKind::gpu)
    all.erase(
        std::remove_if(all.begin(), all.end(),
                       [](const BenchCase& bench_case) { return !bench_case.info.on_gpu_memory; }),
        all.end());
  return all;
}

std::vector<BenchCase> choose_cases(const std::vector<BenchCase>& cases,
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
  std::vector<BenchCase> result;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (chosen[i])
      result.push_back(cases[i]);
  return result;
}

namespace {

constexpr int indent = 4;

std::string sizes_of(const CaseInfo& info) {
  if (!info.sized)
    return "no sizes";
  if (!info.only_bytes.empty()) {
    std::vector<std::string> sizes;
    for (const std::size_t size : info.only_bytes)
      sizes.push_back(std::to_string(size));
    return join(sizes, ", ") + " bytes";
  }
  return format_size_bytes(info.min_bytes) + " to " + format_size_bytes(info.max_bytes) +
         (info.element_bytes > 1 ? ", multiples of " + format_size_bytes(info.element_bytes) : "");
}

std::string between(const CaseInfo& info) {
  std::vector<std::string> words;
  for (const Traffic traffic : info.traffics)
    words.emplace_back(to_string(traffic));
  return join(words, ", ") + (info.bidirectional ? ", also --bidir" : "");
}

std::string entry_text(const CaseInfo& info, const TextStyle& style) {
  const std::string blanks(indent, ' ');
  const auto paragraph = [&](const std::string& text) {
    return wrapped(blanks + text, style.width, indent) + "\n";
  };
  std::string launch;
  if (!info.launch.scopes.empty()) {
    std::vector<std::string> scopes;
    for (const CallScope scope : info.launch.scopes)
      scopes.emplace_back(to_string(scope));
    launch = "; calls of a " + join(scopes, ", ");
    launch += info.launch.one_caller
                  ? ", one after the other"
                  : ", " + std::to_string(info.launch.ctas) + " x " +
                        std::to_string(info.launch.threads) + " threads by default";
  }
  return coloured(info.name, Colour::bold, style) + "  " + info.measures + "\n" +
         paragraph(info.how) +
         paragraph(std::string(to_string(info.metric)) + "; " + sizes_of(info) + "; " +
                   between(info) + "; at least " + std::to_string(info.min_pes) + " PEs" + launch);
}

std::string groups_text(const std::vector<BenchCase>& cases, const TextStyle& style) {
  std::vector<std::string> groups; // in order of appearance
  for (const BenchCase& bench_case : cases)
    if (std::find(groups.begin(), groups.end(), bench_case.info.group) == groups.end())
      groups.push_back(bench_case.info.group);
  std::string out;
  for (const std::string& group : groups) {
    out += (out.empty() ? "" : "\n") + coloured(group, Colour::bold, style) + "\n";
    for (const BenchCase& bench_case : cases)
      if (bench_case.info.group == group)
        out += entry_text(bench_case.info, style);
  }
  return out;
}

/// What --initiator stands for.
std::string heading_of(Initiator initiator) {
  switch (initiator) {
  case Initiator::host:
    return "The host issues operations: --initiator host (default)";
  case Initiator::stream:
    return "Operations in a stream of the GPU: --initiator stream";
  case Initiator::gpu:
    return "A kernel issues operations: --initiator gpu";
  }
  return "";
}

} // namespace

std::string list_text(const std::vector<BenchCase>& cases, const TextStyle& style) {
  std::string out;
  for (const Initiator initiator : all_initiators) {
    std::vector<BenchCase> own;
    for (const BenchCase& bench_case : cases)
      if (bench_case.info.initiator == initiator)
        own.push_back(bench_case);
    if (own.size() == cases.size())
      return groups_text(cases, style);
    if (!own.empty())
      out += (out.empty() ? "" : "\n\n") + coloured(heading_of(initiator), Colour::bold, style) +
             "\n\n" + groups_text(own, style);
  }
  return out;
}

nlohmann::json list_json(const std::vector<BenchCase>& cases) {
  nlohmann::json list = nlohmann::json::array();
  for (const BenchCase& bench_case : cases) {
    const CaseInfo& info = bench_case.info;
    nlohmann::json traffics = nlohmann::json::array();
    for (const Traffic traffic : info.traffics)
      traffics.push_back(to_string(traffic));
    list.push_back({{"name", info.name},
                    {"initiator", to_string(info.initiator)},
                    {"group", info.group},
                    {"metric", to_string(info.metric)},
                    {"measures", info.measures},
                    {"how", info.how},
                    {"sized", info.sized},
                    {"min_bytes", info.min_bytes},
                    {"max_bytes", info.max_bytes},
                    {"element_bytes", info.element_bytes},
                    {"only_bytes", info.only_bytes},
                    {"traffics", traffics},
                    {"bidirectional", info.bidirectional},
                    {"min_pes", info.min_pes}});
    if (info.launch.scopes.empty())
      continue;
    nlohmann::json scopes = nlohmann::json::array();
    for (const CallScope scope : info.launch.scopes)
      scopes.push_back(to_string(scope));
    list.back()["launch"] = {{"scopes", scopes},
                             {"one_caller", info.launch.one_caller},
                             {"ctas", info.launch.one_caller ? 1 : info.launch.ctas},
                             {"threads", info.launch.threads}};
  }
  return {{"cases", list}};
}

} // namespace shmemctl::bench
