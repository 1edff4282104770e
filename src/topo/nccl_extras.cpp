#include "src/topo/nccl_extras.h"

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/topo/node_fields.h"

namespace shmemctl::nccl {

namespace {

void append(std::string& out, const std::string& key, const std::string& value) {
  for (std::size_t at = 0; at == 0 || at < value.size(); at += max_value_bytes)
    out +=
        "  <shmemctl key=\"" + key + "\" value=\"" + value.substr(at, max_value_bytes) + "\"/>\n";
}

} // namespace

std::string extras(const Node& plain, const Node& node) {
  const NodeFields have = fields_of(plain);
  const NodeFields want = fields_of(node);
  std::string out;
  for (const auto& [key, value] : want) {
    const auto found = have.find(key);
    if (found == have.end() || found->second != value)
      append(out, key, value);
  }
  for (const auto& [key, value] : have)
    if (want.count(key) == 0)
      out += "  <shmemctl key=\"" + key + "\"/>\n";
  return out;
}

Node with_extras(const Node& plain, const XmlElement& system, const std::string& subject) {
  NodeFields fields;
  const XmlElement* first = nullptr;
  std::set<std::string> seen;
  for (const XmlElement& element : system.children) {
    if (element.name != "shmemctl")
      continue;
    const std::string* key = element.find("key");
    if (key == nullptr)
      throw input_error(subject, element.position(), "<shmemctl> without key",
                        "delete this element");
    if (first == nullptr) {
      first = &element;
      fields = fields_of(plain);
    }
    const std::string* value = element.find("value");
    if (value == nullptr)
      fields.erase(*key);
    else if (seen.insert(*key).second)
      fields[*key] = *value;
    else
      fields[*key] += *value;
  }
  if (first == nullptr)
    return plain;
  Node node = node_from_fields(fields, plain, subject, first->position());
  normalize(node);
  return node;
}

} // namespace shmemctl::nccl
