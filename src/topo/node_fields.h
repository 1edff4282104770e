// A node as flat text fields, each under a key that names its device: the form in which a format
// carries what it has no words for.
#pragma once

#include <map>
#include <string>

#include "src/topo/node.h"

namespace shmemctl {

/// "pci.0000:18:00.0.numa" -> "0". Devices are keyed by what identifies them (PCI address, name),
/// not by position, so that two nodes that differ in one device differ in that device's keys only.
/// A fact that is unknown has no key. Values are printable ASCII without blanks, quotes or XML's
/// characters, except that lists are separated by single blanks. `format`, `notes` and the origins
/// of facts are left out.
using NodeFields = std::map<std::string, std::string>;

NodeFields fields_of(const Node& node);

/// The node that `fields` describe; where a fact of `base` has the same value, its origin is kept.
/// Throws Error (usage) naming the key for a field that is missing, malformed or points nowhere.
/// Memory is bounded by the number and length of the fields.
/// @param subject, position where the fields came from, for the message
Node node_from_fields(const NodeFields& fields, const Node& base, const std::string& subject,
                      const std::string& position);

} // namespace shmemctl
