// The node model's fields as flat texts, which XML dumps use for facts that their format has no
// element for.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>

#include "src/model/topo/model_fields.h"
#include "src/model/topo/node.h"
#include "src/model/topo/readers/xml.h"

namespace shmemctl::field_text {

/// A value that is encoded as one word.
template <class T>
concept Word = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string> ||
    std::same_as<T, PciAddress> || std::same_as<T, Distance>;

/// Percent-encodes everything but letters, digits and a few marks. "" becomes "%". "-" becomes
/// "%2d", so that "-" can mean that there is no value. An encoded text never starts with "?".
std::string escape(const std::string& text);
std::optional<std::string> unescape(const std::string& word);

/// "PIX", "NV:18"; an unknown distance with its reason: "?=not%20told"
std::string encode_distance(const Distance& distance);
std::optional<Distance> decode_distance(const std::string& word);

template <Word T>
std::string encode(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return escape(value);
  } else if constexpr (std::is_same_v<T, PciAddress>) {
    return to_string(value);
  } else if constexpr (std::is_same_v<T, Distance>) {
    return encode_distance(value);
  } else if constexpr (std::is_enum_v<T>) {
    return enum_name(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else {
    char text[64]; // to_chars writes the shortest form that reads back to the same value
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return std::string(text, end);
  }
}

template <Word T>
std::optional<T> decode(const std::string& word) {
  if constexpr (std::is_same_v<T, std::string>) {
    return unescape(word);
  } else if constexpr (std::is_same_v<T, PciAddress>) {
    return parse_pci_address(word);
  } else if constexpr (std::is_same_v<T, Distance>) {
    return decode_distance(word);
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& entry : enum_names(T{}))
      if (word == entry.word)
        return entry.value;
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    return word == "true" || word == "false" ? std::optional<bool>(word == "true") : std::nullopt;
  } else {
    T value{};
    const char* const end = word.data() + word.size();
    const auto result = std::from_chars(word.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end)
      return std::nullopt;
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(value))
        return std::nullopt;
    return value;
  }
}

} // namespace shmemctl::field_text

namespace shmemctl {

struct NodeField {
  std::string text;   ///< printable ASCII without quotes or XML's characters; blanks between words
  std::string origin; ///< call or file from which the fact was read, or the place in a file
};

/// "pci.0000:18:00.0.numa" -> "0", "pci.0000:18:00.0.link.width" -> "?the%20link%20is%20down". The
/// names are those of a report's model. A list's own field holds the names of its items, "-" if it
/// has none. PCI functions are named by address and NICs by name, so that a device that only one of
/// two nodes has does not rename the others. The texts contain neither `format`, nor the origins of
/// known facts, nor versions that only the live machine has.
using NodeFields = std::map<std::string, NodeField>;

NodeFields fields_of(const Node& node);

/// Adds a value under `key`; an existing key is continued, so that a long text can be split.
void add_field(NodeFields& to, const std::string& key, const std::string& text,
               const std::string& position);

/// The node that `from` describes. Throws Error (usage) naming the key and where it is, for a field
/// that is missing or malformed, or for a node that shape_problem() rejects. Memory is
/// bounded by the number and length of the fields.
/// @param subject, position of the whole, for messages
Node node_from_fields(const NodeFields& from, const std::string& subject,
                      const std::string& position);

} // namespace shmemctl

namespace shmemctl::nccl {

/// The longest value of an attribute that we write: NCCL reads values into 256 bytes.
inline constexpr std::size_t max_value_bytes = 240;

/// The elements, one per line, that turn `plain` (what reading NCCL's own elements gives) into
/// `node`: the fields that differ (src/model/topo/node_fields.h). A long text is split over
/// elements of one key.
std::string extras(const Node& plain, const Node& node);

/// `plain` with the extras below <system> applied. Throws Error (usage) with line and column.
Node with_extras(const Node& plain, const XmlElement& system, const std::string& subject);

} // namespace shmemctl::nccl
