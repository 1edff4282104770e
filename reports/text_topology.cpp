// The topology, mapping and links of a report as text.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "reports/json_view.h"
#include "reports/text.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// What nvidia-smi prints for an unknown affinity.
constexpr const char* not_available = "N/A";
/// The most reasons for unknown cells that are listed; there is rarely more than one.
constexpr std::size_t max_reasons = 10;

struct Matrix {
  explicit Matrix(const json& topology)
      : gpus(view::list(topology, "gpus")), distances(view::member(topology, "distances")),
        labels(view::list(distances, "labels")), rows(view::list(distances, "matrix")),
        nics(view::list(topology, "nics")) {}

  const json& gpus;
  const json& distances;
  const json& labels;
  const json& rows;
  const json& nics; ///< in the order of their labels

  /// GPU labels come first; a document may have fewer labels than GPUs.
  bool is_gpu(std::size_t device) const { return device < gpus.size(); }
  std::string name(std::size_t device) const {
    return is_gpu(device) ? "GPU" + std::to_string(device)
                          : "NIC" + view::text(nic(device), "source_number",
                                               std::to_string(device - gpus.size()));
  }
  const json& nic(std::size_t device) const {
    static const json none;
    const std::size_t position = device - gpus.size();
    return position < nics.size() ? nics[position] : none;
  }
  std::string cell(std::size_t row, std::size_t column) const {
    if (row >= rows.size() || !rows[row].is_array() || column >= rows[row].size() ||
        !rows[row][column].is_string())
      return "?";
    const std::string word = safe_text(rows[row][column].get<std::string>());
    return word == "X" ? " X " : word;
  }
};

/// The cells that follow a GPU's distances: CPU affinity, NUMA affinity, GPU NUMA id. Empty for
/// NICs.
std::string affinity(const Matrix& matrix, std::size_t device) {
  if (!matrix.is_gpu(device))
    return "\t\t\t";
  const json& gpu = matrix.gpus[device];
  return view::text(gpu, "cpu_affinity", not_available) + "\t" +
         view::text(gpu, "numa", view::text(gpu, "numa_affinity", not_available)) + "\t\t" +
         view::text(gpu, "memory_numa", not_available);
}

std::string matrix_lines(const Matrix& matrix) {
  std::string out;
  for (std::size_t i = 0; i < matrix.labels.size(); ++i)
    out += "\t" + matrix.name(i);
  out += "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  for (std::size_t i = 0; i < matrix.labels.size(); ++i) {
    out += matrix.name(i) + "\t";
    for (std::size_t j = 0; j < matrix.labels.size(); ++j)
      out += matrix.cell(i, j) + "\t";
    out += affinity(matrix, i) + "\n";
  }
  return out;
}

const char* const legend =
    "\nLegend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., "
    "QPI/UPI)\n"
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
    "within a NUMA node\n"
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
    "Bridge)\n"
    "  PIX  = Connection traversing at most a single PCIe bridge\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n";

/// The short legend, for output without `verbose`.
const char* const brief_legend =
    "\nX self; PIX one PCIe bridge; PXB several; PHB host bridge; NODE within a NUMA node;\n"
    "SYS between NUMA nodes; NV# that many NVLinks\n";

std::string nic_legend(const Matrix& matrix) {
  std::string out;
  for (std::size_t i = matrix.gpus.size(); i < matrix.labels.size(); ++i)
    out += "  " + matrix.name(i) + ": " +
           (view::member(matrix.nic(i), "unnamed") == true
                ? "name unknown (" + safe_text(view::scalar(matrix.labels[i]).value_or("?")) + ")"
                : safe_text(view::scalar(matrix.labels[i]).value_or("?"))) +
           "\n";
  return out.empty() ? "" : "\nNIC Legend:\n\n" + out;
}

std::string unknown_lines(const Matrix& matrix) {
  bool any = false;
  for (std::size_t i = 0; !any && i < matrix.labels.size(); ++i)
    for (std::size_t j = 0; !any && j < matrix.labels.size(); ++j)
      any = matrix.cell(i, j) == "?";
  if (!any)
    return "";
  const json& groups = view::list(matrix.distances, "unknown");
  if (groups.empty())
    return "\n  ?    = Unknown: the report does not say why\n";
  std::string out = "\n";
  for (std::size_t i = 0; i < groups.size() && i < max_reasons; ++i)
    out += "  ?    = Unknown: " + view::text(groups[i], "reason", "no reason given") + "\n";
  if (groups.size() > max_reasons)
    out += "  ?    = and " + std::to_string(groups.size() - max_reasons) + " more reasons\n";
  return out;
}

std::string other_nics(const json& topology) {
  std::string names;
  for (const json& nic : view::list(topology, "other_nics"))
    names += (names.empty() ? "" : ", ") + view::text(nic, "name", "?");
  return names.empty() ? "" : "\nOther NICs (no RDMA): " + names + "\n";
}

} // namespace

std::string topology_text(const json& topology, const TextStyle& style) {
  if (!topology.is_object())
    return "";
  const Matrix matrix(topology);
  if (matrix.labels.empty())
    return "No GPU and no RDMA device.\n" + other_nics(topology);
  return matrix_lines(matrix) + (style.verbose ? legend : brief_legend) + nic_legend(matrix) +
         unknown_lines(matrix) + other_nics(topology);
}

namespace {

using view::text;

/// "mlx5_0/1".
std::string use_text(const json& use) {
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

/// PCIe generation by speed; "" for an unknown speed.
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

/// "400G x16 Gen5", or the known part of it.
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

/// Joins the texts of a PE's NICs; once if they are all the same.
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
  if (const std::string source = text(mapping, "version_source"); !source.empty())
    line += " (" + source + ")";
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
    names.push_back(use_text(nics[i]));
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

/// Whether every NIC carries the same load, so that a table of the loads would say nothing.
bool has_even_loads(const json& mapping) {
  const json& nics = view::list(mapping, "nics");
  return !nics.empty() && std::all_of(nics.begin(), nics.end(), [&](const json& nic) {
    const std::optional<double> load = view::number(nic, "load");
    return load && *load > 0 && load == view::number(nics.front(), "load");
  });
}

std::string nic_table(const json& mapping, const TextStyle& style) {
  if (has_even_loads(mapping) && !style.verbose)
    return "";
  Table table({{"NIC"}, {"PEs"}, {"load", Align::right}, {"load factor", Align::right}});
  for (const json& nic : view::list(mapping, "nics")) {
    const std::optional<double> load = view::number(nic, "load");
    const std::optional<double> factor = view::number(nic, "load_factor");
    table.add({use_text(nic), ranges(view::list(nic, "pes")),
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
  if (table.empty())
    return "No PE to map: no GPU (--pes-per-node N maps N PEs without one).\n";
  std::string out = heading(report.mapping) + table.text(style);
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
        names.push_back(use_text(use));
      choices.push_back(names.empty() ? "none" : join(names, "+"));
    }
    table.add({join(versions, ", "), join(choices, " ")});
  }
  const char* lead = groups.size() == 1 ? "All releases of NVSHMEM choose alike here:"
                                        : "Releases of NVSHMEM choose differently here:";
  return coloured(lead, Colour::bold, style) + "\n" + table.text(style);
}

namespace {

/// The advice to print: without `verbose` only the settings that give the best mapping, if that
/// mapping is shown. Problems of another mapping are findings with their own fixes.
json shown_advice(const json& mapping, const TextStyle& style) {
  json shown = json::array();
  const bool best_mapping = view::member(mapping, "policy") == "optimal";
  for (const json& advice : view::list(mapping, "advice"))
    if (style.verbose || (best_mapping && view::member(advice, "library") == "nvshmem" &&
                          view::member(advice, "world") == view::member(mapping, "world")))
      shown.push_back(advice);
  return shown;
}

} // namespace

std::string advice_text(const json& mapping, const TextStyle& style) {
  std::string out;
  const json all = shown_advice(mapping, style);
  for (std::size_t i = 0; i < all.size();) {
    const json& advice = all[i];
    std::vector<std::string> worlds; // following PEs with the same advice share its lines
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

namespace {

/// More GPUs than a node has; a hostile document may have any number.
constexpr std::size_t max_gpus = 64;

std::string cell_of(const ResultRow& row) {
  if (row.status == RowStatus::fail)
    return "WRONG";
  return row.bandwidth_GBps ? fmt::format("{:.1f}", *row.bandwidth_GBps) : "-";
}

/// "GPU10" after "GPU9".
bool is_before(const std::string& left, const std::string& right) {
  return std::pair(left.size(), left) < std::pair(right.size(), right);
}

} // namespace

bool is_link_row(const ResultRow& row) {
  return row.case_name == "gpu-link";
}

std::string links_text(const std::vector<ResultRow>& results, const TextStyle& style) {
  std::map<std::pair<std::string, std::string>, std::string> cells;
  std::vector<std::string> names;
  for (const ResultRow& row : results) {
    if (!is_link_row(row))
      continue;
    const std::string source = safe_text(view::text(row.params, "source", "?"));
    const std::string target = safe_text(view::text(row.params, "target", "?"));
    for (const std::string& name : {source, target})
      if (std::find(names.begin(), names.end(), name) == names.end() && names.size() < max_gpus)
        names.push_back(name);
    cells[{source, target}] = cell_of(row);
  }
  if (names.empty())
    return "";
  std::sort(names.begin(), names.end(), is_before);
  std::vector<Column> columns{{"copies [GB/s], from"}};
  for (const std::string& name : names)
    columns.push_back({name, Align::right});
  Table table(std::move(columns));
  for (const std::string& source : names) {
    std::vector<std::string> line{source};
    for (const std::string& target : names) {
      const auto cell = cells.find({source, target});
      line.push_back(cell != cells.end() ? cell->second : source == target ? "X" : "-");
    }
    table.add(std::move(line));
  }
  return table.text(style);
}

} // namespace shmemctl
