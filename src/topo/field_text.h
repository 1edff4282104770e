// Values of the node model as single printable words, and back.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>

#include "src/topo/model_fields.h"
#include "src/topo/node.h"

namespace shmemctl::field_text {

/// What one word holds.
template <class T>
concept Word = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string> ||
    std::same_as<T, PciAddress> || std::same_as<T, Distance>;

/// Percent-encodes everything but letters, digits and a few marks; "" becomes "%" and "-" "%2d", so
/// that "-" is free to mean nothing; no word starts with "?".
std::string escape(const std::string& text);
std::optional<std::string> unescape(const std::string& word);

/// "PIX", "NV:18", and with the reason "?=not%20told"
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
    return word_of(value);
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
    for (const auto& entry : words_of(T{}))
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
