#include <fmt/format.h>

#include "src/base/error.h"
#include "src/topo/limits.h"
#include "src/topo/readers/hwloc_dump.h"
#include "src/topo/readers/hwloc_tree.h"
#include "src/topo/readers/reader.h"
#include "src/topo/readers/xml.h"

namespace shmemctl {

namespace {

Node read_lstopo(const XmlElement& topology, const std::string& subject) {
  hwloc::Tree tree = hwloc::read_tree(topology, subject);
  hwloc::add_gpus(tree);
  hwloc::add_nics(tree);
  const std::size_t devices = tree.node.gpus.size() + tree.node.nics.size();
  if (devices > topo_limits::max_devices)
    throw input_error(
        subject, topology.position(),
        fmt::format("{} GPUs and NICs exceed the limit of {}", devices, topo_limits::max_devices),
        "pass the topology of one machine");
  hwloc::add_gpu_links(tree, topology);
  normalize(tree.node);
  // The driver's own number is worth telling only where it is another.
  for (Gpu& gpu : tree.node.gpus)
    if (gpu.driver_index && *gpu.driver_index == gpu.index)
      gpu.driver_index = unknown<int>("the same as its index here");
  return std::move(tree.node);
}

} // namespace

Node read_hwloc_xml(const std::string& text, const std::string& subject) {
  const XmlElement topology = parse_xml(text, subject);
  if (topology.name != "topology")
    throw input_error(subject, topology.position(),
                      "the root element is <" + printable(topology.name, 40) + ">, not <topology>",
                      "pass XML as lstopo writes it: lstopo topology.xml");
  std::optional<Node> dump = read_hwloc_dump(topology, subject);
  Node node = dump ? std::move(*dump) : read_lstopo(topology, subject);
  node.format = "hwloc-xml";
  normalize(node);
  return node;
}

} // namespace shmemctl
