#include "src/topo/readers/hwloc_dump.h"

#include "src/base/text.h"
#include "src/topo/node_fields.h"

namespace shmemctl {

std::optional<Node> read_hwloc_dump(const XmlElement& topology, const std::string& subject) {
  const std::string_view prefix = hwloc_info_prefix;
  NodeFields fields;
  for (const XmlElement& machine : topology.children)
    for (const XmlElement& element : machine.children) {
      const std::string name = element.name == "info" ? element.get("name") : "";
      if (starts_with(name, prefix))
        add_field(fields, name.substr(prefix.size()), element.get("value"), element.position());
    }
  if (fields.empty())
    return std::nullopt;
  return node_from_fields(fields, subject, topology.position());
}

} // namespace shmemctl
