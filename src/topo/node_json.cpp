#include <nlohmann/json.hpp>

#include "src/topo/json/json_fields.h"
#include "src/topo/json/report_topology.h"
#include "src/topo/writers/writer.h"

namespace shmemctl {

namespace {

using namespace model_json;
using nlohmann::json;

/// No PCI tree is deeper: a bus number is eight bits, and real trees have a handful of levels.
constexpr int deepest_tree = 64;
constexpr std::size_t most_functions = 65536;
constexpr int most_links = 100000;

/// What the rest of the program relies on: indices that point somewhere, parents before children.
class ModelChecks {
public:
  ModelChecks(const Node& node, const Place& place, const std::string& subject)
      : node_(node), place_(place), subject_(subject) {}

  void run() const {
    const std::size_t devices = node_.gpus.size() + node_.nics.size();
    if (devices > most_devices)
      complain(subject_, place_, "more than " + std::to_string(most_devices) + " GPUs and NICs");
    if (node_.pci.size() > most_functions)
      complain(subject_, place_.member("pci"),
               "more than " + std::to_string(most_functions) + " PCI functions");
    if (node_.nvswitches < 0 || node_.nvswitches > most_links)
      complain(subject_, place_.member("nvswitches"), "not a number of NVSwitches");
    if (node_.hidden_nics < 0 || node_.hidden_nics > most_links)
      complain(subject_, place_.member("hidden_nics"), "not a number of NICs");
    check_pci();
    check_gpus();
    const Place nics = place_.member("nics");
    for (std::size_t i = 0; i < node_.nics.size(); ++i)
      index(node_.nics[i].pci, node_.pci.size(), nics.item(i), "pci");
  }

private:
  void index(int value, std::size_t limit, const Place& place, const char* key) const {
    if (value < -1 || value >= static_cast<int>(limit))
      complain(subject_, place.member(key),
               "expected an index from -1 to " + std::to_string(static_cast<int>(limit) - 1));
  }

  void check_pci() const {
    const Place list = place_.member("pci");
    std::vector<int> depth(node_.pci.size(), 0);
    for (std::size_t i = 0; i < node_.pci.size(); ++i) {
      const Place place = list.item(i);
      index(node_.pci[i].parent, i, place, "parent"); // so there is no circle
      index(node_.pci[i].host_bridge, node_.host_bridges.size(), place, "host_bridge");
      if (node_.pci[i].parent >= 0)
        depth[i] = depth[static_cast<std::size_t>(node_.pci[i].parent)] + 1;
      if (depth[i] > deepest_tree)
        complain(subject_, place.member("parent"),
                 "a PCI tree of more than " + std::to_string(deepest_tree) + " levels");
    }
  }

  void check_gpus() const {
    const Place list = place_.member("gpus");
    for (std::size_t i = 0; i < node_.gpus.size(); ++i) {
      const Gpu& gpu = node_.gpus[i];
      const Place place = list.item(i);
      if (gpu.index != static_cast<int>(i))
        complain(subject_, place.member("index"), "expected " + std::to_string(i));
      index(gpu.pci, node_.pci.size(), place, "pci");
      int sum = 0;
      const Place links = place.member("links");
      for (std::size_t at = 0; at < gpu.links.size(); ++at) {
        const int count = gpu.links[at].count;
        if (count < 0 || count > most_links || (sum += count) > most_links)
          complain(subject_, links.item(at).member("count"), "not a number of links");
      }
    }
  }

  const Node& node_;
  const Place& place_;
  const std::string& subject_;
};

json model_of(const Node& node) {
  json model = Writer::encode(node);
  model["format"] = node.format;
  if (node.recorded) {
    std::vector<std::size_t> all(node.recorded->size());
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = i;
    model["recorded"] = matrix_json(*node.recorded, all);
  }
  return model;
}

Node node_from_model(const json& model, const Place& place, const std::string& subject) {
  const Reader reader(model, place, subject);
  Node node;
  reader.decode(model, place, node);
  reader("format", node.format);
  ModelChecks(node, place, subject).run();
  if (const json* recorded = reader.find("recorded"))
    node.recorded = matrix_from_json(*recorded, place.member("recorded"),
                                     node.gpus.size() + node.nics.size(), subject);
  return node;
}

} // namespace

json topology_json(const Node& node) {
  json topology = contract_json(node);
  topology["model"] = model_of(node);
  return topology;
}

Node node_from_json(const json& topology, const std::string& subject) {
  const Place place{nullptr, "topology", 0};
  const Reader reader(topology, place, subject);
  if (const json* model = reader.find("model"))
    return node_from_model(*model, place.member("model"), subject);
  return node_from_contract(topology, place, subject);
}

} // namespace shmemctl
