// Which NICs each PE uses, what each NIC carries, and the lines that would do better.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "reports/json_view.h"
#include "reports/text.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;
using view::text;

/// "mlx5_0/1".
std::string nic_name(const json& use) {
  return text(use, "device", "?") + "/" + text(use, "port", "?");
}

/// Finds the GPU or NIC that a row of the mapping names.
class Devices {
public:
  explicit Devices(const json& topology) : gpus_(view::list(topology, "gpus")) {
    for (const json& nic : view::list(topology, "nics"))
      nics_.emplace(text(nic, "name"), &nic);
  }
  const json& gpu(const json& index) const {
    static const json none;
    if (!index.is_number_integer() || index.get<std::int64_t>() < 0 ||
        index.get<std::uint64_t>() >= gpus_.size())
      return none;
    return gpus_[index.get<std::size_t>()];
  }
  const json& nic(const std::string& name) const {
    static const json none;
    const auto found = nics_.find(name);
    return found == nics_.end() ? none : *found->second;
  }

private:
  const json& gpus_;
  std::map<std::string, const json*> nics_;
};

/// PCIe generation by speed; "" for a speed that none has.
std::string generation(double speed_GTps) {
  static const std::pair<double, const char*> table[] = {{2.5, "Gen1"}, {5, "Gen2"},  {8, "Gen3"},
                                                         {16, "Gen4"},  {32, "Gen5"}, {64, "Gen6"}};
  for (const auto& [speed, name] : table)
    if (speed_GTps > speed * 0.99 && speed_GTps < speed * 1.01)
      return name;
  return "";
}

/// The rate of the port that is used, else of all ports.
std::optional<double> rate_of(const json& nic, const json& use) {
  for (const json& port : view::list(nic, "ports"))
    if (view::member(port, "number") == view::member(use, "port"))
      if (const auto rate = view::number(port, "rate_Gbps"))
        return rate;
  return view::number(nic, "rate_Gbps");
}

/// "400G x16 Gen5", or what of it is known.
std::string link_of(const json& nic, const json& use) {
  std::vector<std::string> parts;
  if (const auto rate = rate_of(nic, use))
    parts.push_back(view::decimal(*rate) + "G");
  const json& pcie = view::member(nic, "pcie");
  if (const auto width = view::number(pcie, "width"))
    parts.push_back("x" + view::decimal(*width));
  if (const auto speed = view::number(pcie, "speed_GTps"))
    parts.push_back(generation(*speed));
  return parts.empty() ? "?" : join(parts, " ");
}

/// Joins what every NIC of a PE says, once if they all say the same.
std::string joined(std::vector<std::string> words) {
  if (std::all_of(words.begin(), words.end(), [&](const auto& word) { return word == words[0]; }))
    words.resize(std::min<std::size_t>(words.size(), 1));
  return join(words, ", ");
}

/// "0-3,5".
std::string ranges(const json& numbers) {
  std::vector<std::int64_t> sorted;
  for (const json& number : numbers)
    if (number.is_number_integer())
      sorted.push_back(number.get<std::int64_t>());
  std::sort(sorted.begin(), sorted.end());
  std::string out;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] - sorted[last] <= 1)
      ++last;
    out += (out.empty() ? "" : ",") + std::to_string(sorted[i]);
    if (sorted[last] != sorted[i])
      out += (sorted[last] - sorted[i] == 1 ? "," : "-") + std::to_string(sorted[last]);
    i = last + 1;
  }
  return out.empty() ? "-" : out;
}

std::string heading(const json& mapping) {
  std::string line = "NICs by policy " + text(mapping, "policy", "?");
  const std::string version = text(mapping, "version");
  if (!version.empty())
    line += " " + version;
  if (const std::string generation_name = text(mapping, "generation"); !generation_name.empty())
    line += " (generation " + generation_name + ")";
  return line + ", world " + text(mapping, "world", "?") + ":\n";
}

std::vector<std::string> pe_row(const json& pe, const Devices& devices, bool verbose) {
  const json& gpu = devices.gpu(view::member(pe, "gpu"));
  const json& nics = view::list(pe, "nics");
  const std::optional<double> used = view::number(pe, "used");
  std::size_t shown = nics.size();
  if (used && !verbose && *used >= 1)
    shown = std::min(shown, static_cast<std::size_t>(std::min(*used, 1e6)));
  std::vector<std::string> names, distances, links;
  for (std::size_t i = 0; i < shown; ++i) {
    names.push_back(nic_name(nics[i]));
    distances.push_back(text(nics[i], "distance", "?"));
    links.push_back(link_of(devices.nic(text(nics[i], "device")), nics[i]));
  }
  std::string list = names.empty() ? "none" : join(names, ", ");
  if (shown < nics.size())
    list += " (+" + std::to_string(nics.size() - shown) + " idle)";
  std::string by = text(pe, "chosen_by");
  if (const std::string reason = text(pe, "reason"); !reason.empty())
    by += (by.empty() ? "" : ": ") + reason;
  const bool has_gpu = gpu.is_object();
  return {text(pe, "pe", "?"),
          has_gpu ? text(pe, "gpu") : "-",
          has_gpu ? text(gpu, "pci", "?") : "-",
          has_gpu ? text(gpu, "numa", "?") : "-",
          list,
          names.empty() ? "-" : joined(distances),
          names.empty() ? "-" : joined(links),
          by};
}

std::string nic_table(const json& mapping, const TextStyle& style) {
  Table table({{"NIC"}, {"PEs"}, {"load", Align::right}, {"load factor", Align::right}});
  for (const json& nic : view::list(mapping, "nics")) {
    const std::optional<double> load = view::number(nic, "load");
    const std::optional<double> factor = view::number(nic, "load_factor");
    table.add({nic_name(nic), ranges(view::list(nic, "pes")),
               load ? fmt::format("{:.2f}", *load) : "?",
               factor ? fmt::format("{:.2f}", *factor) : "?"});
  }
  return table.empty() ? "" : "\n" + table.text(style);
}

std::string exclusion_lines(const json& mapping) {
  std::string out;
  for (const json& exclusion : view::list(mapping, "exclusions")) {
    const std::string port = text(exclusion, "port", "0");
    out += "  " + text(exclusion, "device", "?") + (port == "0" ? "" : "/" + port) + ": " +
           text(exclusion, "reason", "no reason given") + "\n";
  }
  return out.empty() ? "" : "\nNot considered:\n" + out;
}

bool same_advice(const json& left, const json& right) {
  for (const char* key : {"library", "lines", "note"})
    if (view::member(left, key) != view::member(right, key))
      return false;
  return true;
}

} // namespace

std::string mapping_text(const Report& report, const TextStyle& style) {
  if (!report.mapping.is_object())
    return "";
  const Devices devices(report.topology);
  Table table({{"PE", Align::right},
               {"GPU", Align::right},
               {"PCI"},
               {"NUMA", Align::right},
               {"NIC"},
               {"distance"},
               {"link"},
               {"chosen by"}});
  for (const json& pe : view::list(report.mapping, "pes"))
    table.add(pe_row(pe, devices, style.verbose));
  std::string out = heading(report.mapping);
  out += table.empty() ? "no PE\n" : table.text(style);
  out += nic_table(report.mapping, style);
  if (const auto factor = view::number(report.mapping, "load_factor"); factor && *factor > 0)
    out += fmt::format("load factor {:.2f}: the busiest NIC carries {:.2f} times the even share\n",
                       *factor, *factor);
  if (style.verbose)
    out += exclusion_lines(report.mapping);
  return out;
}

std::string compare_versions_text(const json& mapping, const TextStyle& style) {
  const json& groups = view::list(mapping, "compare_versions");
  if (groups.empty())
    return "";
  Table table({{"NVSHMEM"}, {"NICs of PE 0, 1, ..."}});
  for (const json& group : groups) {
    std::vector<std::string> versions, choices;
    for (const json& version : view::list(group, "versions"))
      versions.push_back(version.is_string() ? safe_text(version.get<std::string>()) : "?");
    for (const json& pe : view::list(group, "pes")) {
      std::vector<std::string> names;
      for (const json& use : view::list(pe, "nics"))
        names.push_back(nic_name(use));
      choices.push_back(names.empty() ? "none" : join(names, "+"));
    }
    table.add({join(versions, ", "), join(choices, " ")});
  }
  const char* lead = groups.size() == 1 ? "All releases of NVSHMEM choose alike here:"
                                        : "Releases of NVSHMEM choose differently here:";
  return coloured(lead, Colour::bold, style) + "\n" + table.text(style);
}

std::string advice_text(const json& mapping, const TextStyle& style) {
  std::string out;
  const json& all = view::list(mapping, "advice");
  for (std::size_t i = 0; i < all.size();) {
    const json& advice = all[i];
    std::vector<std::string> worlds; // those that follow with the same advice share its lines
    for (; i < all.size() && same_advice(advice, all[i]); ++i)
      worlds.push_back(text(all[i], "world", "?"));
    const std::string lead = "Best for " + text(advice, "library", "?") +
                             (worlds.size() > 1 ? ", worlds " : ", world ") + join(worlds, ", ") +
                             ":";
    out += coloured(lead, Colour::bold, style) + "\n";
    for (const json& line : view::list(advice, "lines"))
      out += "  " + safe_text(view::scalar(line).value_or("?")) + "\n";
    if (const std::string note = text(advice, "note"); !note.empty())
      out += wrapped("  (" + note + ")", style.width, 3) + "\n";
  }
  return out;
}

} // namespace shmemctl
