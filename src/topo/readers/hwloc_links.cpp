#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "src/base/text.h"
#include "src/topo/limits.h"
#include "src/topo/readers/hwloc_tree.h"

namespace shmemctl::hwloc {

namespace {

constexpr std::size_t max_objects = std::size_t{2} * topo_limits::max_devices;

constexpr std::size_t max_matrix_bytes = std::size_t{8} << 20;

/// A matrix between objects, each named "OSDev:802" or "PCIDev:449".
struct Matrix {
  std::string name;
  std::vector<std::string> objects;
  std::vector<long long> values; ///< MB/s, row by row
};

/// Several children of one name hold pieces of one list; what is longer than any machine's is
/// cut, so that it does not fit.
std::vector<std::string> words_of(const XmlElement& element, const std::string& child_name) {
  std::vector<std::string> words;
  std::size_t size = 0;
  for (const XmlElement& child : element.children)
    if (child.name == child_name && (size += child.text.size()) <= max_matrix_bytes)
      for (std::string& word : split_blanks(child.text))
        words.push_back(std::move(word));
  return words;
}

std::optional<Matrix> parse_matrix(const XmlElement& element) {
  Matrix matrix;
  matrix.name = element.get("name");
  const std::string type = element.get("type");
  for (const std::string& word : words_of(element, "indexes"))
    matrix.objects.push_back(word.find(':') == std::string::npos ? type + ":" + word : word);
  for (const std::string& word : words_of(element, "u64values")) {
    const auto value = parse_integer(word);
    if (!value || *value < 0)
      return std::nullopt;
    matrix.values.push_back(*value);
  }
  const std::size_t count = matrix.objects.size();
  if (count > max_objects || matrix.values.size() != count * count)
    return std::nullopt;
  return matrix;
}

/// What an object of a matrix is here.
struct End {
  LinkTarget kind = LinkTarget::unknown;
  int gpu = -1;
  std::optional<PciAddress> address;
};

std::map<std::string, End> ends(const Tree& tree) {
  std::map<std::string, End> found;
  for (const PciFunction& function : tree.functions) {
    End end;
    end.address = function.device.address;
    for (std::size_t i = 0; i < tree.node.gpus.size(); ++i) {
      const int entry = tree.node.gpus[i].pci;
      if (entry >= 0 && tree.node.pci[static_cast<std::size_t>(entry)].address == *end.address) {
        end.gpu = static_cast<int>(i);
        end.kind = LinkTarget::gpu;
      }
    }
    if (function.subtype == "NVSwitch" ||
        (function.device.class_code && function.device.vendor &&
         pci_ids::is_nvswitch(*function.device.class_code, *function.device.vendor)))
      end.kind = LinkTarget::nvswitch;
    found["PCIDev:" + function.gp_index] = end;
    if (end.kind == LinkTarget::gpu)
      for (const OsDevice& device : function.os_devices)
        found["OSDev:" + device.gp_index] = end;
  }
  return found;
}

/// MB/s of one NVLink, one direction, as hwloc counts it: 20 GB/s on P100 (NVLink 1), 25 GB/s on
/// Volta, Ampere and Hopper (NVLink 2 to 4). The upper byte of the PCI device id is the chip.
std::optional<long long> nvlink_MBps(const Fact<std::uint16_t>& device) {
  if (!device)
    return std::nullopt;
  switch (*device >> 8) {
  case 0x15:
    return 20000;
  case 0x1d:
  case 0x20:
  case 0x22:
  case 0x23:
    return 25000;
  default:
    return std::nullopt;
  }
}

/// False if a count cannot be told.
bool add_row(Tree& tree, const Matrix& matrix, std::size_t row,
             const std::map<std::string, End>& to, int gpu_index) {
  Gpu& gpu = tree.node.gpus[static_cast<std::size_t>(gpu_index)];
  const auto one = nvlink_MBps(tree.node.pci[static_cast<std::size_t>(gpu.pci)].device);
  std::vector<GpuLink> links;
  for (std::size_t column = 0; column < matrix.objects.size(); ++column) {
    const long long value = matrix.values[row * matrix.objects.size() + column];
    if (column == row || value == 0)
      continue;
    if (!one || value % *one != 0 || value / *one > 100)
      return false;
    GpuLink link;
    link.count = static_cast<int>(value / *one);
    link.bandwidth_GBps = known(static_cast<double>(*one) / 1000.0, matrix.name);
    const auto end = to.find(matrix.objects[column]);
    if (starts_with(matrix.objects[column], "Package:")) {
      link.target = LinkTarget::cpu;
    } else if (end != to.end()) {
      link.target = end->second.kind;
      link.target_address = end->second.address;
    }
    links.push_back(link);
  }
  gpu.links.insert(gpu.links.end(), links.begin(), links.end());
  return true;
}

void add_nvlinks(Tree& tree, const Matrix& matrix, const std::map<std::string, End>& to) {
  int skipped = 0;
  for (std::size_t row = 0; row < matrix.objects.size(); ++row) {
    const auto end = to.find(matrix.objects[row]);
    if (end == to.end() || end->second.gpu < 0)
      continue;
    skipped += add_row(tree, matrix, row, to, end->second.gpu) ? 0 : 1;
  }
  if (skipped > 0)
    tree.node.notes.push_back(fmt::format(
        "the NVLinks of {} GPUs are left out: the bandwidth of one is not known", skipped));
}

} // namespace

void add_gpu_links(Tree& tree, const XmlElement& topology) {
  bool nvlink = false;
  for (const XmlElement& child : topology.children) {
    if (!starts_with(child.name, "distances2"))
      continue;
    const std::string name = child.get("name");
    if (name == "NVLinkBandwidth" && !nvlink) {
      nvlink = true;
      if (const auto matrix = parse_matrix(child))
        add_nvlinks(tree, *matrix, ends(tree));
      else
        tree.node.notes.push_back("the NVLinkBandwidth matrix is malformed and left out");
    } else if (name == "XGMIBandwidth") {
      tree.node.notes.push_back("xGMI links are left out: hwloc's XGMIBandwidth is the same number "
                                "for any number of links");
    }
  }
}

} // namespace shmemctl::hwloc
