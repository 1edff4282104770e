#include "src/topo/nccl_extras.h"

#include "src/base/error.h"
#include "src/topo/node_fields.h"

namespace shmemctl::nccl {

std::string extras(const Node& plain, const Node& node) {
  const NodeFields have = fields_of(plain);
  std::string out;
  for (const auto& [key, field] : fields_of(node)) {
    const auto found = have.find(key);
    if (found != have.end() && found->second.text == field.text)
      continue;
    for (std::size_t at = 0; at < field.text.size(); at += max_value_bytes)
      out += "  <shmemctl key=\"" + key + "\" value=\"" + field.text.substr(at, max_value_bytes) +
             "\"/>\n";
  }
  return out;
}

Node with_extras(const Node& plain, const XmlElement& system, const std::string& subject) {
  NodeFields fields;
  for (const XmlElement& element : system.children) {
    if (element.name != "shmemctl")
      continue;
    const std::string* key = element.find("key");
    if (key == nullptr)
      throw input_error(subject, element.position(), "<shmemctl> without a key",
                        "delete this element");
    add_field(fields, *key, element.get("value"), element.position());
  }
  if (fields.empty())
    return plain;
  fields.merge(fields_of(plain));
  Node node = node_from_fields(fields, subject, system.position());
  node.format = plain.format;
  normalize(node);
  return node;
}

} // namespace shmemctl::nccl
