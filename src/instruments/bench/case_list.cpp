// Shows the table of cases: --list as text and as JSON, --help, and the reference page.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "src/base/text.h"
#include "src/base/units.h"
#include "src/instruments/bench/case_table.h"

namespace shmemctl::bench {

namespace {

constexpr int indent = 4;

/// "pair, pairs or all-to-all".
template <class Kind>
std::string alternatives(const std::vector<Kind>& kinds) {
  std::string text;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    text += std::string(i == 0 ? "" : i + 1 == kinds.size() ? " or " : ", ") + to_string(kinds[i]);
  return text;
}

std::string sizes_text(const CaseInfo& info) {
  if (!info.sized)
    return "no message size";
  if (!info.only_bytes.empty()) {
    std::vector<std::string> sizes;
    for (const std::size_t size : info.only_bytes)
      sizes.push_back(std::to_string(size));
    return join(sizes, ", ") + " bytes";
  }
  return format_size_bytes(info.min_bytes) + " to " + format_size_bytes(info.max_bytes) +
         " bytes by default" +
         (info.element_bytes > 1 ? ", multiples of " + format_size_bytes(info.element_bytes) : "");
}

/// "--scope block, thread or warp, 32 x 1024 threads by default".
std::string launch_text(const LaunchRules& launch) {
  return "--scope " + alternatives(launch.scopes) +
         (launch.one_caller
              ? ", one caller"
              : fmt::format(", {} x {} threads by default", launch.ctas, launch.threads));
}

/// The flags and sizes that a case supports.
std::vector<std::string> support_of(const CaseInfo& info) {
  std::vector<std::string> parts = {to_string(info.metric), sizes_text(info),
                                    "--traffic " + alternatives(info.traffics)};
  if (info.bidirectional)
    parts.emplace_back("--bidir");
  if (info.memories.size() > 1)
    parts.push_back("--memory " + alternatives(info.memories));
  if (!info.launch.scopes.empty())
    parts.push_back(launch_text(info.launch));
  parts.push_back(std::to_string(info.min_pes) + (info.min_pes == 1 ? " PE" : " PEs") + " or more");
  return parts;
}

std::string entry_text(const CaseInfo& info, const TextStyle& style) {
  const std::string blanks(indent, ' ');
  const auto paragraph = [&](const std::string& text) {
    return wrapped(blanks + text, style.width, indent) + "\n";
  };
  return coloured(info.name, Colour::bold, style) + "  " + info.measures + "\n" +
         paragraph(info.how) + paragraph(join(support_of(info), "; "));
}

/// Groups of the cases, in order of appearance.
std::vector<std::string> groups_of(const std::vector<BenchCase>& cases) {
  std::vector<std::string> groups;
  for (const BenchCase& bench_case : cases)
    if (std::find(groups.begin(), groups.end(), bench_case.info.group) == groups.end())
      groups.push_back(bench_case.info.group);
  return groups;
}

std::string groups_text(const std::vector<BenchCase>& cases, const TextStyle& style) {
  std::string out;
  for (const std::string& group : groups_of(cases)) {
    out += (out.empty() ? "" : "\n") + coloured(group, Colour::bold, style) + "\n";
    for (const BenchCase& bench_case : cases)
      if (bench_case.info.group == group)
        out += entry_text(bench_case.info, style);
  }
  return out;
}

std::string heading_of(Initiator initiator) {
  switch (initiator) {
  case Initiator::host:
    return "Operations issued by the host: --initiator host (default)";
  case Initiator::stream:
    return "Operations enqueued in a CUDA stream: --initiator stream";
  case Initiator::gpu:
    return "Operations issued by GPU kernels: --initiator gpu";
  }
  return "";
}

/// The cases of all initiators.
std::vector<BenchCase> all_cases() {
  std::vector<BenchCase> all;
  for (const Initiator initiator : all_initiators)
    for (BenchCase& bench_case : cases_of(initiator, MemoryKind::host))
      all.push_back(std::move(bench_case));
  return all;
}

} // namespace

std::string case_names_text(int width) {
  const std::vector<BenchCase> all = all_cases();
  std::vector<std::string> lines;
  for (const std::string& group : groups_of(all)) {
    std::vector<std::string> names;
    for (const BenchCase& bench_case : all)
      if (bench_case.info.group == group &&
          std::find(names.begin(), names.end(), bench_case.info.name) == names.end())
        names.push_back(bench_case.info.name);
    lines.push_back(wrapped("  " + group + ": " + join(names, ", "), width, indent));
  }
  return join(lines, "\n");
}

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
  const auto names = [](const auto& kinds) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto kind : kinds)
      list.push_back(to_string(kind));
    return list;
  };
  nlohmann::json list = nlohmann::json::array();
  for (const BenchCase& bench_case : cases) {
    const CaseInfo& info = bench_case.info;
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
                    {"traffics", names(info.traffics)},
                    {"bidirectional", info.bidirectional},
                    {"min_pes", info.min_pes},
                    {"memories", names(info.memories)}});
    if (info.launch.scopes.empty())
      continue;
    list.back()["launch"] = {{"scopes", names(info.launch.scopes)},
                             {"one_caller", info.launch.one_caller},
                             {"ctas", info.launch.one_caller ? 1 : info.launch.ctas},
                             {"threads", info.launch.threads}};
  }
  return {{"cases", list}};
}

std::string case_reference_markdown() {
  std::string text =
      "# Cases of `bench`\n\nOne section for each initiator. `shmemctl bench --list` prints the "
      "same, and `shmemctl bench --list --json -` the same for scripts.\n";
  const std::vector<BenchCase> all = all_cases();
  for (const Initiator initiator : all_initiators) {
    text += "\n## " + heading_of(initiator) + "\n";
    for (const BenchCase& bench_case : all) {
      const CaseInfo& info = bench_case.info;
      if (info.initiator != initiator)
        continue;
      std::string measures = info.measures;
      measures.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(measures[0])));
      text += fmt::format("\n### {} ({})\n\n{}. {}\n\nMetric, sizes and flags: {}.\n", info.name,
                          to_string(initiator), measures, info.how, join(support_of(info), "; "));
    }
  }
  return text;
}

} // namespace shmemctl::bench
