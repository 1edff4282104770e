#include "src/topo/advice/env_lines.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr const char* local_rank = "${OMPI_COMM_WORLD_LOCAL_RANK:-${SLURM_LOCALID:-$LOCAL_RANK}}";

/// NVSHMEM's arrays of devices hold so many rows, and its list one entry fewer without harm.
constexpr std::size_t max_rows = 32;
constexpr std::size_t max_entries = 31;

std::string device_port(const Node& node, const NicUse& use) {
  return node.nics[static_cast<std::size_t>(use.nic)].name + ":" + std::to_string(use.port);
}

bool before(const NicUse& left, const NicUse& right) {
  return std::pair(left.nic, left.port) < std::pair(right.nic, right.port);
}

/// True if PE i has row i modulo `rows`, and the rows rise.
bool repeats_rising_rows(const std::vector<NicUse>& choice, std::size_t rows) {
  for (std::size_t pe = 0; pe < choice.size(); ++pe) {
    if (pe < rows && pe > 0 && before(choice[pe], choice[pe - 1]))
      return false;
    if (pe >= rows && !(choice[pe] == choice[pe - rows]))
      return false;
  }
  return true;
}

} // namespace

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string_view("_.,:^=-").find(letter) != std::string_view::npos;
  });
  if (plain)
    return text;
  std::string quoted = "'";
  for (char letter : printable(text, 4096))
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::vector<std::string> devices_per_rank(const Node& node, const Mapping& mapping) {
  std::vector<std::string> values;
  for (const PeMapping& pe : mapping.pes) {
    std::vector<std::string> devices;
    for (const NicUse& use : pe.nics)
      devices.push_back(device_port(node, use));
    values.push_back(join(devices, ","));
  }
  return values;
}

std::string devices_of_all(const Node& node, const Mapping& mapping) {
  std::vector<NicUse> all;
  for (const PeMapping& pe : mapping.pes)
    all.insert(all.end(), pe.nics.begin(), pe.nics.end());
  std::sort(all.begin(), all.end(), before);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::string> devices;
  for (const NicUse& use : all)
    devices.push_back(device_port(node, use));
  return join(devices, ",");
}

std::optional<std::string> hca_pe_mapping_value(const Node& node, const Mapping& mapping) {
  std::vector<NicUse> choice;
  for (const PeMapping& pe : mapping.pes) {
    if (pe.nics.size() != 1)
      return std::nullopt;
    choice.push_back(pe.nics[0]);
  }
  std::size_t rows = std::min(choice.size(), max_rows);
  while (rows > 0 && !repeats_rising_rows(choice, rows))
    --rows;
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < rows;) {
    std::size_t end = i + 1;
    while (end < rows && choice[end] == choice[i])
      ++end;
    entries.push_back(device_port(node, choice[i]) + ":" + std::to_string(end - i));
    i = end;
  }
  if (entries.empty() || entries.size() > max_entries)
    return std::nullopt;
  return join(entries, ",");
}

std::vector<std::string> lines_per_rank(const std::string& variable,
                                        const std::vector<std::string>& values) {
  const std::set<std::string> distinct(values.begin(), values.end());
  if (distinct.size() == 1)
    return {"export " + variable + "=" + shell_word(values[0])};
  std::vector<std::string> words;
  for (const std::string& value : values)
    words.push_back(shell_word(value));
  const std::string array = "by_rank";
  return {array + "=(" + join(words, " ") + ")",
          "export " + variable + "=${" + array + "[" + local_rank + "]}"};
}

std::string common_prefix(const Node& node, const Mapping& mapping) {
  std::optional<std::string> common;
  for (const PeMapping& pe : mapping.pes)
    for (const NicUse& use : pe.nics) {
      const std::string& name = node.nics[static_cast<std::size_t>(use.nic)].name;
      if (!common) {
        common = name;
        continue;
      }
      const auto [differs, unused] =
          std::mismatch(common->begin(), common->end(), name.begin(), name.end());
      common->erase(differs, common->end());
    }
  std::string prefix = common.value_or("");
  while (!prefix.empty() && std::isdigit(static_cast<unsigned char>(prefix.back())) != 0)
    prefix.pop_back();
  return prefix;
}

} // namespace shmemctl
