// The topology of a page: its groups and its drawing.
#include "reports/html/topology.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "reports/compare/load.h"
#include "reports/compare/merge.h"
#include "reports/html/blocks.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/networks.h"
#include "reports/table.h"
#include "src/base/folded_names.h"
#include "src/base/json_values.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// No node has more, but a hostile document may.
constexpr std::size_t max_listed_devices = 512;

/// Sets that are merged pairwise (union-find).
class DisjointSets {
public:
  explicit DisjointSets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  /// The smaller root remains: sets keep the order of their first members.
  void join(std::size_t i, std::size_t j) {
    i = find(i);
    j = find(j);
    parent_[std::max(i, j)] = std::min(i, j);
  }

private:
  std::vector<std::size_t> parent_;
};

std::vector<NodeDevice> devices_of(const json& topology) {
  static const json none;
  std::map<std::string, const json*> nics;
  for (const char* list : {"nics", "other_nics"})
    for (const json& nic : view::list(topology, list))
      nics.emplace(view::text(nic, "name"), &nic);
  std::map<std::string, const json*> gpus;
  for (const json& gpu : view::list(topology, "gpus"))
    gpus.emplace("GPU" + view::text(gpu, "index"), &gpu);
  std::vector<NodeDevice> devices;
  for (const json& label : view::list(view::member(topology, "distances"), "labels")) {
    const std::string name = view::scalar(label).value_or("?");
    const bool is_gpu =
        starts_with(name, "GPU") && parse_integer(name.substr(3)).has_value() && !nics.count(name);
    const auto& facts = is_gpu ? gpus : nics;
    const auto found = facts.find(name);
    devices.push_back({name, is_gpu, found == facts.end() ? &none : found->second});
  }
  return devices;
}

/// "NUMA 0"; "NUMA 0, 1" if the devices are on several nodes.
std::string domain_label(const std::vector<NodeDevice>& devices,
                         const std::vector<std::size_t>& members) {
  std::set<std::string> nodes;
  for (const std::size_t member : members)
    if (const auto numa = view::scalar(view::member(*devices[member].facts, "numa")))
      nodes.insert(*numa);
  if (nodes.empty())
    return "NUMA node unknown";
  return "NUMA " + join({nodes.begin(), nodes.end()}, ", ");
}

} // namespace

std::string distance_word(const json& topology, std::size_t i, std::size_t j) {
  const json& matrix = view::list(view::member(topology, "distances"), "matrix");
  if (i >= matrix.size() || !matrix[i].is_array() || j >= matrix[i].size() ||
      !matrix[i][j].is_string())
    return "";
  return matrix[i][j].get<std::string>();
}

NodeGroups group_devices(const json& topology) {
  NodeGroups out{devices_of(topology), {}};
  const std::size_t count = out.devices.size();
  if (count > max_listed_devices)
    return {};
  DisjointSets switches(count), domains(count);
  std::map<std::string, std::size_t> first_of_numa;
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto numa = view::scalar(view::member(*out.devices[i].facts, "numa")))
      domains.join(i, first_of_numa.emplace(*numa, i).first->second);
    for (std::size_t j = 0; j < i; ++j) {
      const std::string word = distance_word(topology, i, j);
      const bool below_a_switch = word == "PIX" || word == "PXB";
      if (below_a_switch)
        switches.join(i, j);
      if (below_a_switch || word == "PHB" || word == "NODE")
        domains.join(i, j);
    }
  }
  std::map<std::size_t, std::map<std::size_t, std::vector<std::size_t>>> tree;
  for (std::size_t i = 0; i < count; ++i)
    tree[domains.find(i)][switches.find(i)].push_back(i);
  for (const auto& [domain_root, groups] : tree) {
    Domain domain;
    SwitchGroup loose;
    loose.loose = true;
    std::vector<std::size_t> all;
    for (const auto& [root, members] : groups) {
      SwitchGroup group;
      SwitchGroup& into = members.size() == 1 ? loose : group;
      for (const std::size_t member : members)
        (out.devices[member].is_gpu ? into.gpus : into.nics).push_back(member);
      all.insert(all.end(), members.begin(), members.end());
      if (members.size() > 1)
        domain.groups.push_back(std::move(group));
    }
    if (!loose.gpus.empty() || !loose.nics.empty())
      domain.groups.push_back(std::move(loose));
    domain.label = domain_label(out.devices, all);
    out.domains.push_back(std::move(domain));
  }
  return out;
}

namespace {

constexpr double device_width = 96, device_height = 46, gap = 10, pad = 10, header = 20;
constexpr double mapping_height = 76; ///< between GPUs and NICs, for the lines of the mapping
constexpr double nvlink_height = 46;  ///< above the GPUs
constexpr std::size_t max_columns = 8;
constexpr std::size_t max_drawn = 160;

std::size_t rows_for(std::size_t devices) {
  return (devices + max_columns - 1) / max_columns;
}

double grid_height(std::size_t rows) {
  return rows == 0 ? 0 : static_cast<double>(rows) * (device_height + gap) - gap;
}

/// "mlx5_0" of "mlx5_0/1" and "mlx5_0:1".
std::string device_of(const std::string& port) {
  return port.substr(0, port.find_first_of("/:"));
}

/// Names of devices in "mlx5_0/1, mlx5_4/2 and mlx5_7/1".
std::set<std::string> devices_of(const std::string& subject) {
  std::set<std::string> names;
  std::string word;
  for (const char c : subject + " ") {
    if (c != ' ' && c != ',') {
      word += c;
      continue;
    }
    names.insert(device_of(word));
    word.clear();
  }
  return names;
}

LineKind line_kind(const std::string& distance) {
  if (distance == "PIX" || distance == "PXB")
    return LineKind::near;
  return distance == "PHB" || distance == "NODE" ? LineKind::node : LineKind::far;
}

std::string with_unit(const json& facts, const char* key, const char* unit) {
  const auto value = view::number(facts, key);
  return value ? view::decimal(*value) + unit : "";
}

class Drawer {
public:
  Drawer(const json& topology, const json& mapping, const std::set<std::string>& hot,
         const std::set<std::string>& faulty)
      : topology_(topology), mapping_(mapping), hot_(hot), faulty_(faulty),
        groups_(group_devices(topology)), box_of_(groups_.devices.size()) {}

  std::optional<TopologyPicture> draw() {
    if (groups_.devices.empty() || groups_.devices.size() > max_drawn)
      return std::nullopt;
    read_mapping();
    place();
    draw_links();
    draw_mapping();
    return std::move(picture_);
  }

private:
  void read_mapping() {
    for (const json& pe : view::list(mapping_, "pes"))
      pes_of_["GPU" + view::text(pe, "gpu", "?")].push_back(view::text(pe, "pe", "?"));
    for (const json& nic : view::list(mapping_, "nics")) {
      std::vector<std::string>& pes =
          pes_of_[view::scalar(view::member(nic, "device")).value_or("?")];
      for (const json& pe : view::list(nic, "pes"))
        pes.push_back(view::scalar(pe).value_or("?"));
    }
  }

  /// All domains in a row, with the same number of rows of GPUs and of NICs in each.
  void place() {
    std::size_t gpu_rows = 0, nic_rows = 0;
    for (const Domain& domain : groups_.domains)
      for (const SwitchGroup& group : domain.groups) {
        gpu_rows = std::max(gpu_rows, rows_for(group.gpus.size()));
        nic_rows = std::max(nic_rows, rows_for(group.nics.size()));
      }
    const double top = gap + (has_nvlink() ? nvlink_height : 0);
    gpu_y_ = top + header + header;
    nic_y_ = gpu_y_ + grid_height(gpu_rows) + (gpu_rows > 0 && nic_rows > 0 ? mapping_height : 0);
    const double bottom = nic_y_ + grid_height(nic_rows) + pad;
    double x = gap;
    for (const Domain& domain : groups_.domains) {
      const double left = x;
      const std::size_t box = picture_.boxes.size();
      picture_.boxes.push_back({BoxKind::domain,
                                left,
                                top,
                                0,
                                bottom - top + pad,
                                domain.label,
                                "",
                                {},
                                DeviceState::usual});
      x += pad;
      for (const SwitchGroup& group : domain.groups)
        x = place_group(group, x, top + header, bottom) + gap;
      x += pad - gap;
      picture_.boxes[box].width = x - left;
      x += gap;
    }
    picture_.width = x;
    picture_.height = bottom + pad + gap;
  }

  /// Places the boxes of a group from `x` on; returns the x coordinate of its end.
  double place_group(const SwitchGroup& group, double x, double top, double bottom) {
    const std::size_t columns =
        std::clamp(std::max(group.gpus.size(), group.nics.size()), std::size_t{1}, max_columns);
    const double inner = static_cast<double>(columns) * (device_width + gap) - gap;
    const double side = group.loose ? 0 : pad;
    if (!group.loose)
      picture_.boxes.push_back({BoxKind::pcie_switch,
                                x,
                                top,
                                inner + 2 * side,
                                bottom - top,
                                "PCIe switch",
                                "",
                                {},
                                DeviceState::usual});
    place_devices(group.gpus, x + side, gpu_y_, inner);
    place_devices(group.nics, x + side, nic_y_, inner);
    return x + inner + 2 * side;
  }

  void place_devices(const std::vector<std::size_t>& devices, double x, double y, double room) {
    const std::size_t columns = std::min(devices.size(), max_columns);
    const double used = static_cast<double>(columns) * (device_width + gap) - gap;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::size_t row = i / columns, column = i % columns;
      PictureBox box = device_box(groups_.devices[devices[i]]);
      box.x = x + (room - used) / 2 + static_cast<double>(column) * (device_width + gap);
      box.y = y + static_cast<double>(row) * (device_height + gap);
      box_of_[devices[i]] = picture_.boxes.size();
      picture_.boxes.push_back(std::move(box));
    }
  }

  PictureBox device_box(const NodeDevice& device) const {
    PictureBox box;
    box.kind = device.is_gpu ? BoxKind::gpu : BoxKind::nic;
    box.width = device_width;
    box.height = device_height;
    box.label = device.name;
    const auto pes = pes_of_.find(device.name);
    const bool mapped = pes != pes_of_.end();
    const std::string users = mapped && !pes->second.empty() ? "PE " + join(pes->second, ",") : "";
    const json& facts = *device.facts;
    std::vector<std::string> details;
    if (!device.is_gpu)
      details.push_back(with_unit(facts, "rate_Gbps", "G"));
    if (!device.is_gpu && mapped && users.empty())
      box.state = DeviceState::idle;
    if (hot_.count(device.name) > 0)
      box.state = DeviceState::hot;
    if (!device.is_gpu && faulty_.count(device.name) > 0)
      box.state = DeviceState::faulty;
    details.push_back(box.state == DeviceState::idle ? "idle" : users);
    if (box.state == DeviceState::faulty)
      details.emplace_back("error");
    details.erase(std::remove(details.begin(), details.end(), ""), details.end());
    box.detail = join(details, " · ");
    for (const char* key : {"name", "pci", "numa", "link_layer"})
      if (const auto value = view::scalar(view::member(facts, key)))
        box.tip.push_back(std::string(key) + " " + *value);
    if (hot_.count(device.name) > 0)
      box.tip.emplace_back("hot spot");
    if (box.state == DeviceState::faulty)
      box.tip.emplace_back("error: see the findings");
    return box;
  }

  bool has_nvlink() const {
    for (std::size_t i = 0; i < groups_.devices.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!link_word(i, j).empty())
          return true;
    return false;
  }

  /// "NV18" between two GPUs, else "".
  std::string link_word(std::size_t i, std::size_t j) const {
    if (!groups_.devices[i].is_gpu || !groups_.devices[j].is_gpu)
      return "";
    const std::string word = distance_word(topology_, i, j);
    return starts_with(word, "NV") || starts_with(word, "XGMI") ? word : "";
  }

  const PictureBox& box(std::size_t device) const { return picture_.boxes[box_of_[device]]; }
  static double middle(const PictureBox& box) { return box.x + box.width / 2; }

  /// One bar if all pairs of GPUs have the same links, else an arc for each pair.
  void draw_links() {
    std::vector<std::size_t> gpus;
    std::set<std::string> words;
    for (std::size_t i = 0; i < groups_.devices.size(); ++i) {
      if (!groups_.devices[i].is_gpu)
        continue;
      for (const std::size_t other : gpus)
        words.insert(link_word(i, other));
      gpus.push_back(i);
    }
    if (words.size() == 1 && !words.begin()->empty()) {
      const double left = box(gpus.front()).x;
      double right = 0;
      for (const std::size_t gpu : gpus)
        right = std::max(right, box(gpu).x + box(gpu).width);
      PictureBox bar{BoxKind::nvlink, left, gap, right - left, 24, "", "", {}, DeviceState::usual};
      const auto switches = view::number(view::member(topology_, "model"), "nvswitches");
      bar.label =
          *words.begin() + " between all GPUs" +
          (switches && *switches > 0 ? ", " + view::decimal(*switches) + " NVSwitches" : "");
      for (const std::size_t gpu : gpus)
        picture_.lines.push_back({LineKind::nvlink, middle(box(gpu)), bar.y + bar.height,
                                  middle(box(gpu)), box(gpu).y, ""});
      picture_.boxes.push_back(std::move(bar));
      return;
    }
    for (std::size_t i = 0; i < gpus.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (const std::string word = link_word(gpus[i], gpus[j]); !word.empty())
          picture_.lines.push_back({LineKind::nvlink, middle(box(gpus[j])), box(gpus[j]).y,
                                    middle(box(gpus[i])), box(gpus[i]).y, word});
  }

  void draw_mapping() {
    std::map<std::string, std::size_t> index_of;
    for (std::size_t i = 0; i < groups_.devices.size(); ++i)
      index_of.emplace(groups_.devices[i].name, i);
    for (const json& pe : view::list(mapping_, "pes")) {
      const auto gpu = index_of.find("GPU" + view::text(pe, "gpu", "?"));
      if (gpu == index_of.end())
        continue;
      const json& nics = view::list(pe, "nics");
      const double used = view::number(pe, "used").value_or(static_cast<double>(nics.size()));
      for (std::size_t i = 0; i < nics.size() && static_cast<double>(i) < used; ++i) {
        const auto nic = index_of.find(view::scalar(view::member(nics[i], "device")).value_or(""));
        if (nic == index_of.end() || groups_.devices[nic->second].is_gpu)
          continue;
        const std::string word = view::text(nics[i], "distance", "?");
        const PictureBox &from = box(gpu->second), &to = box(nic->second);
        picture_.lines.push_back({line_kind(word), middle(from), from.y + from.height, middle(to),
                                  to.y, "PE " + view::text(pe, "pe", "?") + ": " + word});
      }
    }
  }

  const json& topology_;
  const json& mapping_;
  const std::set<std::string>&hot_, &faulty_;
  NodeGroups groups_;
  std::vector<std::size_t> box_of_;
  std::map<std::string, std::vector<std::string>> pes_of_; ///< by device
  double gpu_y_ = 0, nic_y_ = 0;
  TopologyPicture picture_;
};

const char* to_string(BoxKind kind) {
  switch (kind) {
  case BoxKind::domain:
    return "domain";
  case BoxKind::pcie_switch:
    return "switch";
  case BoxKind::nic:
    return "nic";
  case BoxKind::nvlink:
    return "nvlink";
  case BoxKind::gpu:
    break;
  }
  return "gpu";
}

const char* to_string(LineKind kind) {
  return kind == LineKind::near   ? "near"
         : kind == LineKind::node ? "node"
         : kind == LineKind::far  ? "far"
                                  : "nvlink";
}

const char* to_string(DeviceState state) {
  switch (state) {
  case DeviceState::hot:
    return "hot";
  case DeviceState::idle:
    return "idle";
  case DeviceState::faulty:
    return "faulty";
  case DeviceState::usual:
    break;
  }
  return "usual";
}

} // namespace

std::optional<TopologyPicture> topology_picture(const json& topology, const json& mapping,
                                                const std::set<std::string>& hot,
                                                const std::set<std::string>& faulty) {
  return Drawer(topology, mapping, hot, faulty).draw();
}

std::string host_of(const Report& report) {
  if (std::string host = view::text(report.topology, "hostname"); !host.empty())
    return host;
  std::set<std::string> hosts;
  for (const RunInfo& run : runs_of(report))
    hosts.insert(run.hosts.begin(), run.hosts.end());
  return hosts.size() == 1 ? *hosts.begin() : "";
}

std::set<std::pair<std::string, std::string>> measured_hot_nics(const Report& report) {
  const std::string own_host = host_of(report);
  std::set<std::pair<std::string, std::string>> hot;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::info ||
        (finding.id != "nic-hotspot-measured" && finding.id != "nic-congested"))
      continue;
    const std::size_t space = finding.subject.rfind(' '); // after the host
    hot.emplace(space == std::string::npos ? own_host : finding.subject.substr(0, space),
                device_of(finding.subject.substr(space == std::string::npos ? 0 : space + 1)));
  }
  for (const json& port : view::list(report.hotspots, "ports"))
    if (view::member(port, "hot") == true)
      hot.emplace(view::text(port, "host", own_host),
                  view::scalar(view::member(port, "device")).value_or(""));
  std::erase_if(hot, [](const auto& nic) { return nic.second.empty(); });
  return hot;
}

std::set<std::string> nics_hot_by_mapping(const Report& report) {
  std::set<std::string> hot;
  for (const Finding& finding : report.findings)
    if (finding.severity != Severity::info &&
        (finding.id == "nic-hotspot" || finding.id == "mapping-collapse"))
      for (const std::string& device : devices_of(finding.subject))
        hot.insert(device);
    else if (finding.severity != Severity::info && finding.id == "nic-hotspot-predicted") {
      const bool one_node = starts_with(finding.subject, "node "); // "node 0 mlx5_0/1"
      const std::size_t nics = one_node ? finding.subject.rfind(' ') + 1 : 0;
      for (const std::string& device : devices_of(finding.subject.substr(nics)))
        hot.insert(device);
    }
  const json& variants = view::list(report.simulation, "variants");
  if (!variants.empty()) // the first variant has the given mapping
    for (const json& rail : view::list(variants.front(), "rails"))
      if (view::member(rail, "hot") == true)
        hot.insert(view::scalar(view::member(rail, "device")).value_or(""));
  hot.erase("");
  return hot;
}

std::set<std::pair<std::string, std::string>> faulty_nics(const Report& report) {
  static const std::set<std::string> loads = {"nic-hotspot", "nic-hotspot-measured",
                                              "nic-hotspot-predicted", "nic-congested",
                                              "mapping-collapse"};
  const std::string own_host = host_of(report);
  std::set<std::pair<std::string, std::string>> faulty;
  for (const Finding& finding : report.findings) {
    if (finding.severity != Severity::error || loads.contains(finding.id))
      continue;
    const std::string& subject = finding.subject;
    const std::size_t space = subject.find(' ');
    const bool names_host = space != std::string::npos && space == subject.rfind(' ') &&
                            subject.find(',') == std::string::npos;
    if (names_host)
      faulty.emplace(subject.substr(0, space), device_of(subject.substr(space + 1)));
    else
      for (const std::string& device : devices_of(subject))
        faulty.emplace(own_host, device);
  }
  for (const json& sign : view::list(report.hotspots, "signs"))
    if (view::text(sign, "severity") == "error" && !loads.contains(view::text(sign, "finding")))
      faulty.emplace(view::text(sign, "host", own_host), view::text(sign, "device"));
  std::erase_if(faulty, [](const auto& nic) { return nic.second.empty(); });
  return faulty;
}

json picture_json(const TopologyPicture& picture) {
  json boxes = json::array(), lines = json::array();
  for (const PictureBox& box : picture.boxes) {
    json tip = json::array();
    for (const std::string& line : box.tip)
      tip.push_back(safe_text(line));
    boxes.push_back({{"kind", to_string(box.kind)},
                     {"x", box.x},
                     {"y", box.y},
                     {"width", box.width},
                     {"height", box.height},
                     {"label", safe_text(box.label)},
                     {"detail", safe_text(box.detail)},
                     {"tip", std::move(tip)},
                     {"state", to_string(box.state)}});
  }
  for (const PictureLine& line : picture.lines)
    lines.push_back({{"kind", to_string(line.kind)},
                     {"from", {line.x1, line.y1}},
                     {"to", {line.x2, line.y2}},
                     {"label", safe_text(line.label)}});
  return {{"width", picture.width},
          {"height", picture.height},
          {"boxes", std::move(boxes)},
          {"lines", std::move(lines)}};
}

namespace {

/// Nodes of a page, with picture and tables: further ones are left out, and counted.
constexpr std::size_t max_pictures = 16;

json mapping_table(const json& mapping) {
  TableBlock table("NICs of each PE", {{"PE", ColumnKind::number},
                                       {"GPU", ColumnKind::number},
                                       {"NIC", ColumnKind::code},
                                       {"port", ColumnKind::number},
                                       {"distance"},
                                       {"carries traffic"},
                                       {"chosen by"},
                                       {"reason"}});
  for (const json& pe : view::list(mapping, "pes")) {
    const json& nics = view::list(pe, "nics");
    const double used = view::number(pe, "used").value_or(static_cast<double>(nics.size()));
    for (std::size_t i = 0; i < nics.size(); ++i)
      table.add({cell(view::member(pe, "pe")), cell(view::member(pe, "gpu")),
                 cell(view::member(nics[i], "device")), cell(view::member(nics[i], "port")),
                 cell(view::member(nics[i], "distance")),
                 cell(std::string(static_cast<double>(i) < used ? "yes" : "no")),
                 cell(view::member(pe, "chosen_by")), cell(view::member(pe, "reason"))});
    if (nics.empty())
      table.add({cell(view::member(pe, "pe")), cell(view::member(pe, "gpu")),
                 cell(std::string("none")), nullptr, nullptr, nullptr,
                 cell(view::member(pe, "chosen_by")), cell(view::member(pe, "reason"))});
  }
  table.fold();
  return table.empty() ? json() : table.block();
}

json distance_table(const json& topology) {
  const json& distances = view::member(topology, "distances");
  const json& labels = view::list(distances, "labels");
  constexpr std::size_t max_labels = 160;
  if (labels.empty() || labels.size() > max_labels)
    return nullptr;
  std::vector<PageColumn> columns{{"from"}};
  for (const json& label : labels)
    columns.push_back({view::scalar(label).value_or("?")});
  TableBlock table("Distances", columns);
  const json& matrix = view::list(distances, "matrix");
  for (std::size_t i = 0; i < labels.size() && i < matrix.size(); ++i) {
    std::vector<json> row{cell(labels[i])};
    if (matrix[i].is_array())
      for (const json& word : matrix[i])
        row.push_back(word.is_null() ? cell(std::string("?")) : cell(word));
    table.add(std::move(row));
  }
  table.fold();
  return table.block();
}

std::string mapping_sentence(const json& mapping) {
  std::string text = "NICs by policy " + view::text(mapping, "policy", "?");
  if (const std::string version = view::text(mapping, "version"); !version.empty())
    text += " " + version;
  text += ", world " + view::text(mapping, "world", "?");
  if (const auto factor = view::number(mapping, "load_factor"); factor && *factor > 0)
    text += fmt::format(": the busiest NIC carries {:.2f} times the even share", *factor);
  return text + ".";
}

/// Identical nodes, and the data from which they are drawn.
struct DrawnNodes {
  json topology, mapping;
  std::set<std::string> hot, faulty; ///< names of NICs
  std::vector<std::string> hosts;
};

/// The part of a report that a picture needs: there may be many rows.
Report drawn_part(const Report& report) {
  Report part;
  part.topology = report.topology;
  part.mapping = report.mapping;
  part.findings = report.findings;
  part.hotspots = report.hotspots;
  part.simulation = report.simulation;
  part.runs = runs_of(report);
  return part;
}

/// Nodes of a job that differ from the node of PE 0. All nodes of a kind are named.
void add_other_nodes(const Report& report, std::vector<Report>& to) {
  const std::vector<std::string> all_names = node_names_of(report.hosts);
  for (const json& node : report.other_nodes) {
    Report part;
    part.topology = view::member(node, "topology");
    part.mapping = view::member(node, "mapping");
    part.hotspots = report.hotspots;
    std::vector<std::string> names;
    for (const json& number : view::list(node, "nodes"))
      if (const auto at = whole_number<std::size_t>(number); at && *at < all_names.size())
        names.push_back(all_names[*at]);
    if (part.topology.is_object() && names.size() > 1)
      part.topology["hostname"] = fold_names(names);
    to.push_back(std::move(part));
  }
}

/// A part for each node that the report describes: for a merged report whose runs have different
/// nodes, one for each run, with the findings of that run.
std::vector<Report> parts_of(const Report& report) {
  std::vector<Report> parts;
  const bool runs_differ =
      std::any_of(report.runs.begin(), report.runs.end(), [](const RunInfo& run) {
        return run.topology.is_object() || run.mapping.is_object();
      });
  if (!runs_differ) {
    parts.push_back(drawn_part(report));
    add_other_nodes(report, parts);
    return parts;
  }
  for (const RunInfo& run : report.runs) {
    Report part;
    part.topology = run.topology;
    part.mapping = run.mapping;
    part.hotspots = report.hotspots;
    part.runs = {run};
    const std::string prefix = prefix_of(run);
    std::copy_if(
        report.findings.begin(), report.findings.end(), std::back_inserter(part.findings),
        [&prefix](const Finding& finding) { return starts_with(finding.message, prefix); });
    parts.push_back(std::move(part));
  }
  add_other_nodes(report, parts);
  return parts;
}

/// The nodes in order of appearance. NICs that counters found hot on a host may be in another
/// report than the host's topology; NICs that are hot by the mapping are taken from the same
/// report.
std::vector<DrawnNodes> nodes_of(const std::vector<Shown>& shown) {
  std::map<std::string, std::set<std::string>> measured, faulty_of;
  std::vector<Report> parts;
  for (const Shown& one : shown)
    for (Report& part : parts_of(one.report()))
      parts.push_back(std::move(part));
  for (const Report& part : parts) {
    for (const auto& [host, nic] : measured_hot_nics(part))
      measured[host].insert(nic);
    for (const auto& [host, nic] : faulty_nics(part))
      faulty_of[host].insert(nic);
  }
  std::map<std::string, std::size_t> first;
  std::vector<DrawnNodes> nodes;
  for (const Report& report : parts) {
    if (!report.topology.is_object())
      continue;
    const std::string host = host_of(report);
    std::set<std::string> hot = nics_hot_by_mapping(report);
    hot.insert(measured[host].begin(), measured[host].end());
    const std::set<std::string>& faulty = faulty_of[host];
    const json alike = {view::member(report.topology, "distances"), report.mapping, hot, faulty};
    const auto [found, is_new] = first.emplace(json_line(alike), nodes.size());
    if (is_new)
      nodes.push_back({report.topology, report.mapping, std::move(hot), faulty, {}});
    std::vector<std::string>& hosts = nodes[found->second].hosts;
    if (!host.empty() && std::find(hosts.begin(), hosts.end(), host) == hosts.end())
      hosts.push_back(host);
  }
  return nodes;
}

std::size_t devices_of(const DrawnNodes& node) {
  return view::list(view::member(node.topology, "distances"), "labels").size();
}

/// Whether a node has neither GPUs nor NICs, and its PEs use none.
bool has_nothing(const DrawnNodes& node) {
  const json& pes = view::list(node.mapping, "pes");
  return devices_of(node) == 0 && std::all_of(pes.begin(), pes.end(), [](const json& pe) {
           return view::list(pe, "nics").empty();
         });
}

json picture_block(const DrawnNodes& node) {
  const auto picture = topology_picture(node.topology, node.mapping, node.hot, node.faulty);
  if (!picture)
    return nullptr;
  json block = picture_json(*picture);
  block["type"] = "topology";
  block["title"] = safe_text(labelled(join(node.hosts, ", "), "GPUs and NICs"));
  return block;
}

} // namespace

json topology_section(const std::vector<Shown>& shown) {
  const std::vector<DrawnNodes> nodes = nodes_of(shown);
  json blocks = json::array();
  for (std::size_t i = 0; i < nodes.size() && i < max_pictures; ++i) {
    const DrawnNodes& node = nodes[i];
    if (has_nothing(node))
      continue;
    if (node.mapping.is_object())
      blocks.push_back(note_block(mapping_sentence(node.mapping)));
    if (devices_of(node) > max_drawn)
      blocks.push_back(note_block(
          fmt::format("Not drawn: {} devices, a picture has at most {}; the report has all.",
                      devices_of(node), max_drawn)));
    for (json block :
         {picture_block(node), mapping_table(node.mapping), distance_table(node.topology)})
      if (!block.is_null())
        blocks.push_back(std::move(block));
  }
  if (const std::size_t more = nodes.size() - std::min(nodes.size(), max_pictures); more > 0)
    blocks.push_back(note_block(fmt::format("{} more {} from these and {} left out.", more,
                                            more == 1 ? "node differs" : "nodes differ",
                                            more == 1 ? "is" : "are")));
  return section("topology", "Topology", std::move(blocks));
}

} // namespace shmemctl::html
