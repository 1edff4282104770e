// A node as flat text fields: the form in which a file carries what its format has no words for.
#pragma once

#include <map>
#include <string>

#include "src/topo/node.h"

namespace shmemctl {

struct NodeField {
  std::string text;   ///< printable ASCII without quotes or XML's characters; blanks between words
  std::string origin; ///< of the fact that it is, or where in a file it stands
};

/// "pci.0000:18:00.0.numa" -> "0", "pci.0000:18:00.0.link.width" -> "?the%20link%20is%20down".
/// The names are those of a report's model. A list's own field holds the names of its items, "-" if
/// it has none. PCI functions are named by address and NICs by name, so that two nodes that differ
/// in one device differ in that device's keys only. `format` and the origins of known facts are no
/// fields.
using NodeFields = std::map<std::string, NodeField>;

NodeFields fields_of(const Node& node);

/// Adds what a file says under `key`; a key that is there already is continued, which lets a long
/// text be split.
void add_field(NodeFields& to, const std::string& key, const std::string& text,
               const std::string& position);

/// The node that `from` describes. Throws Error (usage) naming the key and where it stands for a
/// field that is missing or malformed, or for a node that shape_problem() complains of. Memory is
/// bounded by the number and length of the fields.
/// @param subject, position of the whole, for messages
Node node_from_fields(const NodeFields& from, const std::string& subject,
                      const std::string& position);

} // namespace shmemctl
