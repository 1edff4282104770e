#include "src/bench/list.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl::bench {

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

std::string groups_text(const std::vector<CaseEntry>& cases, const TextStyle& style) {
  std::vector<std::string> groups; // in order of appearance
  for (const CaseEntry& entry : cases)
    if (std::find(groups.begin(), groups.end(), entry.info.group) == groups.end())
      groups.push_back(entry.info.group);
  std::string out;
  for (const std::string& group : groups) {
    out += (out.empty() ? "" : "\n") + coloured(group, Colour::bold, style) + "\n";
    for (const CaseEntry& entry : cases)
      if (entry.info.group == group)
        out += entry_text(entry.info, style);
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

std::string list_text(const std::vector<CaseEntry>& cases, const TextStyle& style) {
  std::string out;
  for (const Initiator initiator : all_initiators) {
    std::vector<CaseEntry> own;
    for (const CaseEntry& entry : cases)
      if (entry.info.initiator == initiator)
        own.push_back(entry);
    if (own.size() == cases.size())
      return groups_text(cases, style);
    if (!own.empty())
      out += (out.empty() ? "" : "\n\n") + coloured(heading_of(initiator), Colour::bold, style) +
             "\n\n" + groups_text(own, style);
  }
  return out;
}

nlohmann::json list_json(const std::vector<CaseEntry>& cases) {
  nlohmann::json list = nlohmann::json::array();
  for (const CaseEntry& entry : cases) {
    const CaseInfo& info = entry.info;
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
