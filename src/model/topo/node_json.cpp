#include <nlohmann/json.hpp>

#include "src/model/topo/json/json_fields.h"
#include "src/model/topo/json/report_topology.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

namespace {

using namespace model_json;
using nlohmann::json;

/// Far more levels than the PCI tree of a real machine has.
constexpr int deepest_tree = 64;
constexpr std::size_t max_functions = 65536;
constexpr int max_links_of_node = 100000;

/// The invariants that the rest of the program relies on: valid indices, parents before children.
class ModelChecks {
public:
  ModelChecks(const Node& node, const JsonPath& path, const std::string& subject)
      : node_(node), path_(path), subject_(subject) {}

  void run() const {
    const std::size_t devices = node_.gpus.size() + node_.nics.size();
    if (devices > max_listed_devices)
      complain(subject_, path_,
               "more than " + std::to_string(max_listed_devices) + " GPUs and NICs");
    if (node_.pci.size() > max_functions)
      complain(subject_, path_.member("pci"),
               "more than " + std::to_string(max_functions) + " PCI functions");
    if (node_.nvswitches < 0 || node_.nvswitches > max_links_of_node)
      complain(subject_, path_.member("nvswitches"),
               "expected an integer from 0 to " + std::to_string(max_links_of_node));
    if (node_.hidden_nics < 0 || node_.hidden_nics > max_links_of_node)
      complain(subject_, path_.member("hidden_nics"),
               "expected an integer from 0 to " + std::to_string(max_links_of_node));
    check_pci();
    check_gpus();
    const JsonPath nics = path_.member("nics");
    for (std::size_t i = 0; i < node_.nics.size(); ++i)
      index(node_.nics[i].pci, node_.pci.size(), nics.item(i), "pci");
  }

private:
  void index(int value, std::size_t limit, const JsonPath& path, const char* key) const {
    if (value < -1 || value >= static_cast<int>(limit))
      complain(subject_, path.member(key),
               "expected an index from -1 to " + std::to_string(static_cast<int>(limit) - 1));
  }

  void check_pci() const {
    const JsonPath list = path_.member("pci");
    std::vector<int> depth(node_.pci.size(), 0);
    for (std::size_t i = 0; i < node_.pci.size(); ++i) {
      const JsonPath path = list.item(i);
      index(node_.pci[i].parent, i, path, "parent"); // so parents form no cycle
      index(node_.pci[i].host_bridge, node_.host_bridges.size(), path, "host_bridge");
      if (node_.pci[i].parent >= 0)
        depth[i] = depth[static_cast<std::size_t>(node_.pci[i].parent)] + 1;
      if (depth[i] > deepest_tree)
        complain(subject_, path.member("parent"),
                 "a PCI tree of more than " + std::to_string(deepest_tree) + " levels");
    }
  }

  void check_gpus() const {
    const JsonPath list = path_.member("gpus");
    for (std::size_t i = 0; i < node_.gpus.size(); ++i) {
      const Gpu& gpu = node_.gpus[i];
      const JsonPath path = list.item(i);
      if (gpu.index != static_cast<int>(i))
        complain(subject_, path.member("index"),
                 "expected " + std::to_string(i) + ", the position in the list");
      index(gpu.pci, node_.pci.size(), path, "pci");
      int sum = 0;
      const JsonPath links = path.member("links");
      for (std::size_t at = 0; at < gpu.links.size(); ++at) {
        const int count = gpu.links[at].count;
        if (count < 0 || count > max_links_of_node || (sum += count) > max_links_of_node)
          complain(subject_, links.item(at).member("count"),
                   "not an integer from 0 to " + std::to_string(max_links_of_node) +
                       ", or the sum of the GPU's links exceeds that");
      }
    }
  }

  const Node& node_;
  const JsonPath& path_;
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

Node node_from_model(const json& model, const JsonPath& path, const std::string& subject) {
  const Reader reader(model, path, subject);
  Node node;
  reader.decode(model, path, node);
  reader("format", node.format);
  ModelChecks(node, path, subject).run();
  if (const json* recorded = reader.find("recorded"))
    node.recorded = matrix_from_json(*recorded, path.member("recorded"),
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
  const JsonPath path{nullptr, "topology", 0};
  const Reader reader(topology, path, subject);
  if (const json* model = reader.find("model"))
    return node_from_model(*model, path.member("model"), subject);
  return node_from_contract(topology, path, subject);
}

} // namespace shmemctl
