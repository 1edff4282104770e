#include "src/topo/node_fields.h"

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/topo/field_text.h"

namespace shmemctl {

namespace {

using field_text::decode;
using field_text::encode;

/// The keys of a node's devices; equal ones are told apart by "#2", "#3" in the node's order.
struct Keys {
  std::vector<std::string> pci, gpus, nics;
};

class Namer {
public:
  std::string operator()(const std::string& key) {
    std::string name = key;
    for (int& count = seen_[key]; !taken_.insert(name).second;)
      name = key + "#" + std::to_string(++count + 1);
    return name;
  }

private:
  std::map<std::string, int> seen_; ///< how often a key has been given a number
  std::set<std::string> taken_;
};

Keys keys_of(const Node& node) {
  constexpr std::size_t longest_name = 100; // bytes; a longer one is keyed by position
  Keys keys;
  Namer pci;
  for (const PciDevice& device : node.pci)
    keys.pci.push_back(pci(to_string(device.address)));
  Namer gpus;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const int entry = node.gpus[i].pci;
    const bool placed = entry >= 0 && static_cast<std::size_t>(entry) < keys.pci.size();
    keys.gpus.push_back(
        gpus(placed ? keys.pci[static_cast<std::size_t>(entry)] : "@" + std::to_string(i)));
  }
  Namer nics;
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const std::string name = encode(node.nics[i].name);
    keys.nics.push_back(nics(name.size() <= longest_name ? name : "@" + std::to_string(i)));
  }
  return keys;
}

/// Which entries the keys stand for.
std::map<std::string, std::size_t> positions(const std::vector<std::string>& keys) {
  std::map<std::string, std::size_t> found;
  for (std::size_t i = 0; i < keys.size(); ++i)
    found.emplace(keys[i], i);
  return found;
}

/// Each type's fields, once for both directions. `at` ends with a dot.
template <class Archive, class T>
void visit_package(Archive& archive, const std::string& at, T& package) {
  archive.value(at + "os_index", package.os_index);
  archive.fact(at + "model", package.model);
}

template <class Archive, class T>
void visit_numa(Archive& archive, const std::string& at, T& numa) {
  archive.value(at + "os_index", numa.os_index);
  archive.value(at + "kind", numa.kind);
  archive.fact(at + "package", numa.package);
  archive.fact(at + "cpus", numa.cpus);
  archive.fact(at + "memory_bytes", numa.memory_bytes);
}

template <class Archive, class T>
void visit_host_bridge(Archive& archive, const std::string& at, T& bridge) {
  archive.value(at + "domain", bridge.domain);
  archive.value(at + "bus", bridge.bus);
  archive.fact(at + "numa", bridge.numa);
  archive.fact(at + "package", bridge.package);
  archive.value(at + "exact", bridge.exact);
}

template <class Archive, class T>
void visit_pci(Archive& archive, const std::string& at, T& device) {
  archive.value(at + "address", device.address);
  archive.value(at + "kind", device.kind);
  archive.value(at + "host_bridge", device.host_bridge);
  archive.fact(at + "class", device.class_code);
  archive.fact(at + "vendor", device.vendor);
  archive.fact(at + "device", device.device);
  archive.fact(at + "subsystem_vendor", device.subsystem_vendor);
  archive.fact(at + "subsystem_device", device.subsystem_device);
  archive.fact(at + "numa", device.numa);
  archive.fact(at + "speed_GTps", device.link.speed_GTps);
  archive.fact(at + "width", device.link.width);
  archive.fact(at + "max_speed_GTps", device.link.max_speed_GTps);
  archive.fact(at + "max_width", device.link.max_width);
  archive.value(at + "sysfs_path", device.sysfs_path);
}

template <class Archive, class T>
void visit_gpu(Archive& archive, const std::string& at, T& gpu) {
  archive.value(at + "vendor", gpu.vendor);
  archive.fact(at + "name", gpu.name);
  archive.fact(at + "uuid", gpu.uuid);
  archive.fact(at + "numa", gpu.numa);
  archive.fact(at + "cpus", gpu.cpus);
  archive.fact(at + "driver_index", gpu.driver_index);
  archive.list(at + "links", gpu.links, [&archive](const std::string& key, auto& link) {
    archive.word(key.substr(0, key.size() - 1), link, field_text::encode_link,
                 field_text::decode_link);
  });
}

template <class Archive, class T>
void visit_port(Archive& archive, const std::string& at, T& port) {
  archive.value(at + "number", port.number);
  archive.fact(at + "state", port.state);
  archive.fact(at + "link_layer", port.link_layer);
  archive.fact(at + "rate_Gbps", port.rate_Gbps);
  archive.fact(at + "lid", port.lid);
  archive.fact(at + "active_mtu_bytes", port.active_mtu_bytes);
  archive.fact(at + "netdev", port.netdev);
  archive.list(at + "gids", port.gids, [&archive](const std::string& key, auto& gid) {
    archive.value(key + "index", gid.index);
    archive.value(key + "value", gid.value);
    archive.fact(key + "type", gid.type);
    archive.fact(key + "netdev", gid.netdev);
  });
}

template <class Archive, class T>
void visit_nic(Archive& archive, const std::string& at, T& nic) {
  archive.value(at + "name", nic.name);
  archive.fact(at + "rdma", nic.rdma);
  archive.fact(at + "driver", nic.driver);
  archive.fact(at + "numa", nic.numa);
  archive.fact(at + "firmware", nic.firmware);
  archive.fact(at + "node_guid", nic.node_guid);
  archive.value(at + "virtual", nic.virtual_device);
  archive.fact(at + "data_direct", nic.data_direct);
  archive.list(at + "ports", nic.ports,
               [&archive](const std::string& key, auto& port) { visit_port(archive, key, port); });
}

/// What hangs on no device.
template <class Archive, class T>
void visit_rest(Archive& archive, T& node) {
  archive.value("hostname", node.hostname);
  archive.value("nvswitches", node.nvswitches);
  archive.list("packages", node.packages, [&archive](const std::string& key, auto& package) {
    visit_package(archive, key, package);
  });
  archive.list("numa_nodes", node.numa_nodes,
               [&archive](const std::string& key, auto& numa) { visit_numa(archive, key, numa); });
  archive.list("host_bridges", node.host_bridges, [&archive](const std::string& key, auto& bridge) {
    visit_host_bridge(archive, key, bridge);
  });
}

/// Collects the fields.
class Collector {
public:
  template <class T>
  void value(const std::string& key, const T& value) {
    fields_[key] = encode(value);
  }
  template <class T>
  void fact(const std::string& key, const Fact<T>& fact) {
    if (fact)
      fields_[key] = encode(*fact);
  }
  template <class T, class Encode, class Decode>
  void word(const std::string& key, const T& value, Encode to_word, Decode) {
    fields_[key] = to_word(value);
  }
  template <class T, class Each>
  void list(const std::string& key, const std::vector<T>& items, Each each) {
    fields_[key] = std::to_string(items.size());
    for (std::size_t i = 0; i < items.size(); ++i)
      each(key + "." + std::to_string(i) + ".", items[i]);
  }
  void reference(const std::string& key, int index, const std::vector<std::string>& keys) {
    const bool points = index >= 0 && static_cast<std::size_t>(index) < keys.size();
    fields_[key] = points ? keys[static_cast<std::size_t>(index)] : "-";
  }
  void text(const std::string& key, std::string text) { fields_[key] = std::move(text); }
  NodeFields take() { return std::move(fields_); }

private:
  NodeFields fields_;
};

/// Fills a node from fields.
class Filler {
public:
  /// More than any machine has, and few enough for memory.
  static constexpr std::size_t most_elements = 100'000;

  Filler(const NodeFields& fields, const std::string& subject, const std::string& position)
      : fields_(fields), subject_(subject), position_(position),
        budget_(std::min(fields.size(), most_elements)) {}

  const std::string& text(const std::string& key) const {
    const auto found = fields_.find(key);
    if (found == fields_.end())
      throw problem(key, "is missing");
    return found->second;
  }
  bool has(const std::string& key) const { return fields_.count(key) != 0; }

  template <class T>
  void value(const std::string& key, T& to) const {
    to = parsed<T>(key);
  }
  template <class T>
  void fact(const std::string& key, Fact<T>& to) const {
    if (!has(key)) {
      if (to || to.origin.empty())
        to = unknown<T>("the file does not tell");
      return;
    }
    if (!to || encode(*to) != text(key))
      to = known(parsed<T>(key), "shmemctl's own field");
  }
  template <class T, class Encode, class Decode>
  void word(const std::string& key, T& to, Encode to_word, Decode from_word) const {
    if (to_word(to) == text(key))
      return;
    auto value = from_word(text(key));
    if (!value)
      throw malformed(key);
    to = std::move(*value);
  }
  template <class T, class Each>
  void list(const std::string& key, std::vector<T>& items, Each each) {
    const auto count = parsed<std::size_t>(key);
    spend(key, count);
    items.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      each(key + "." + std::to_string(i) + ".", items[i]);
  }
  int reference(const std::string& key, const std::map<std::string, std::size_t>& keys,
                std::size_t limit) const {
    if (text(key) == "-")
      return -1;
    const auto found = keys.find(text(key));
    if (found == keys.end() || found->second >= limit)
      throw problem(key, "points to " + printable(text(key), 60) + ", which is not there");
    return static_cast<int>(found->second);
  }
  std::vector<std::string> key_list(const std::string& key) {
    std::vector<std::string> keys;
    if (!text(key).empty())
      keys = split(text(key), ' ');
    spend(key, keys.size());
    return keys;
  }
  /// A list element has at least one field: more elements than fields are a made-up size.
  void spend(const std::string& key, std::size_t count) {
    if (count > budget_)
      throw problem(key, "is larger than the file");
    budget_ -= count;
  }

  Error problem(const std::string& key, const std::string& what) const {
    return input_error(subject_, position_, "the field " + printable(key, 80) + " " + what,
                       "write the file again with shmemctl topo --dump, or delete its shmemctl "
                       "elements");
  }
  Error malformed(const std::string& key) const {
    return problem(key, "reads " + printable(text(key), 60));
  }

private:
  template <class T>
  T parsed(const std::string& key) const {
    std::optional<T> value = decode<T>(text(key));
    if (!value)
      throw malformed(key);
    return std::move(*value);
  }

  const NodeFields& fields_;
  const std::string& subject_;
  const std::string& position_;
  std::size_t budget_;
};

/// The elements of `items` in the order of `keys`; new ones where `items` has none.
template <class T>
std::vector<T> reordered(const std::vector<T>& items, const std::vector<std::string>& old_keys,
                         const std::vector<std::string>& keys) {
  const std::map<std::string, std::size_t> old = positions(old_keys);
  std::vector<T> result;
  for (const std::string& key : keys) {
    const auto found = old.find(key);
    result.push_back(found == old.end() ? T() : items[found->second]);
  }
  return result;
}

void fill_recorded(Filler& filler, Node& node) {
  node.recorded.reset();
  if (!filler.has("recorded"))
    return;
  const std::size_t count = node.gpus.size() + node.nics.size();
  if (filler.text("recorded") != std::to_string(count))
    throw filler.problem("recorded", "does not fit the devices");
  filler.spend("recorded", count);
  DistanceMatrix matrix;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "recorded." + std::to_string(i);
    const std::vector<std::string> words = split(filler.text(key), ' ');
    if (words.size() != count)
      throw filler.problem(key, "does not fit the devices");
    matrix.emplace_back();
    for (const std::string& word : words) {
      const std::optional<Distance> distance = field_text::decode_distance(word);
      if (!distance)
        throw filler.malformed(key);
      matrix.back().push_back(*distance);
    }
  }
  node.recorded = std::move(matrix);
}

void fill_devices(Filler& filler, const Node& base, Node& node) {
  const Keys old = keys_of(base);
  const std::vector<std::string> pci_keys = filler.key_list("pci");
  const std::vector<std::string> gpu_keys = filler.key_list("gpus");
  const std::vector<std::string> nic_keys = filler.key_list("nics");
  node.pci = reordered(base.pci, old.pci, pci_keys);
  node.gpus = reordered(base.gpus, old.gpus, gpu_keys);
  node.nics = reordered(base.nics, old.nics, nic_keys);
  const std::map<std::string, std::size_t> pci = positions(pci_keys);
  for (std::size_t i = 0; i < node.pci.size(); ++i) {
    const std::string at = "pci." + pci_keys[i] + ".";
    visit_pci(filler, at, node.pci[i]);
    node.pci[i].parent = filler.reference(at + "parent", pci, i);
    const int host = node.pci[i].host_bridge;
    if (host < -1 || host >= static_cast<int>(node.host_bridges.size()))
      throw filler.malformed(at + "host_bridge");
  }
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const std::string at = "gpu." + gpu_keys[i] + ".";
    visit_gpu(filler, at, node.gpus[i]);
    node.gpus[i].pci = filler.reference(at + "pci", pci, pci.size());
    node.gpus[i].index = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const std::string at = "nic." + nic_keys[i] + ".";
    visit_nic(filler, at, node.nics[i]);
    node.nics[i].pci = filler.reference(at + "pci", pci, pci.size());
  }
}

} // namespace

NodeFields fields_of(const Node& node) {
  const Keys keys = keys_of(node);
  Collector collector;
  visit_rest(collector, node);
  collector.text("pci", join(keys.pci, " "));
  collector.text("gpus", join(keys.gpus, " "));
  collector.text("nics", join(keys.nics, " "));
  for (std::size_t i = 0; i < node.pci.size(); ++i) {
    const std::string at = "pci." + keys.pci[i] + ".";
    visit_pci(collector, at, node.pci[i]);
    collector.reference(at + "parent", node.pci[i].parent, keys.pci);
  }
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const std::string at = "gpu." + keys.gpus[i] + ".";
    visit_gpu(collector, at, node.gpus[i]);
    collector.reference(at + "pci", node.gpus[i].pci, keys.pci);
  }
  for (std::size_t i = 0; i < node.nics.size(); ++i) {
    const std::string at = "nic." + keys.nics[i] + ".";
    visit_nic(collector, at, node.nics[i]);
    collector.reference(at + "pci", node.nics[i].pci, keys.pci);
  }
  if (node.recorded) {
    collector.text("recorded", std::to_string(node.recorded->size()));
    for (std::size_t i = 0; i < node.recorded->size(); ++i) {
      std::vector<std::string> words;
      for (const Distance& cell : (*node.recorded)[i])
        words.push_back(field_text::encode_distance(cell));
      collector.text("recorded." + std::to_string(i), join(words, " "));
    }
  }
  return collector.take();
}

Node node_from_fields(const NodeFields& fields, const Node& base, const std::string& subject,
                      const std::string& position) {
  Filler filler(fields, subject, position);
  Node node = base;
  visit_rest(filler, node);
  fill_devices(filler, base, node);
  fill_recorded(filler, node);
  return node;
}

} // namespace shmemctl
