// The matrix, exactly as `nvidia-smi topo -m` lays it out: tabs between cells, " X " for self, the
// two legends; eyes and diff tools that know one know the other.
#include "reports/json_view.h"
#include "reports/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// What the tool from which the layout comes prints for an affinity that it does not know.
constexpr const char* not_available = "N/A";
/// Reasons for unknown cells that are listed; there is rarely more than one.
constexpr std::size_t most_reasons = 10;

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

/// Behind a GPU's cells: CPU affinity, NUMA affinity, GPU NUMA id. A NIC's are left empty.
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
  for (std::size_t i = 0; i < groups.size() && i < most_reasons; ++i)
    out += "  ?    = Unknown: " + view::text(groups[i], "reason", "no reason given") + "\n";
  if (groups.size() > most_reasons)
    out += "  ?    = and " + std::to_string(groups.size() - most_reasons) + " more reasons\n";
  return out;
}

std::string other_nics(const json& topology) {
  std::string names;
  for (const json& nic : view::list(topology, "other_nics"))
    names += (names.empty() ? "" : ", ") + view::text(nic, "name", "?");
  return names.empty() ? "" : "\nOther NICs (no RDMA): " + names + "\n";
}

} // namespace

std::string topology_text(const json& topology) {
  if (!topology.is_object())
    return "";
  const Matrix matrix(topology);
  if (matrix.labels.empty())
    return "No GPU and no RDMA device.\n" + other_nics(topology);
  return matrix_lines(matrix) + legend + nic_legend(matrix) + unknown_lines(matrix) +
         other_nics(topology);
}

} // namespace shmemctl
