// Values of the node model as single printable words, and back.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "src/base/text.h"
#include "src/topo/node.h"

namespace shmemctl::field_text {

/// Percent-encodes everything but letters, digits and a few marks; "" becomes "%" and "-" "%2d", so
/// that "-" is free to mean nothing.
std::string escape(const std::string& text);
std::optional<std::string> unescape(const std::string& word);

/// The words of an enumeration, in the order of its values.
template <class E>
struct Words;
template <>
struct Words<PciKind> {
  static constexpr const char* all[] = {"endpoint", "bridge", "whole-switch"};
};
template <>
struct Words<NumaKind> {
  static constexpr const char* all[] = {"cpu", "gpu-memory", "other-memory"};
};
template <>
struct Words<GpuLinkKind> {
  static constexpr const char* all[] = {"nvlink", "xgmi", "c2c"};
};
template <>
struct Words<LinkTarget> {
  static constexpr const char* all[] = {"gpu", "nvswitch", "cpu", "unknown"};
};
template <>
struct Words<PortState> {
  static constexpr const char* all[] = {"down", "init", "armed", "active"};
};
template <>
struct Words<LinkLayer> {
  static constexpr const char* all[] = {"infiniband", "ethernet", "other"};
};

template <class T>
std::string encode(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return escape(value);
  } else if constexpr (std::is_same_v<T, PciAddress>) {
    return to_string(value);
  } else if constexpr (std::is_enum_v<T>) {
    return Words<T>::all[static_cast<std::size_t>(value)];
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else {
    char text[64]; // to_chars writes the shortest form that reads back to the same value
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return std::string(text, end);
  }
}

template <class T>
std::optional<T> decode(const std::string& word) {
  if constexpr (std::is_same_v<T, std::string>) {
    return unescape(word);
  } else if constexpr (std::is_same_v<T, PciAddress>) {
    return parse_pci_address(word);
  } else if constexpr (std::is_enum_v<T>) {
    for (std::size_t i = 0; i < std::size(Words<T>::all); ++i)
      if (word == Words<T>::all[i])
        return static_cast<T>(i);
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    return word == "true" || word == "false" ? std::optional<bool>(word == "true") : std::nullopt;
  } else {
    T value{};
    const char* const end = word.data() + word.size();
    const auto result = std::from_chars(word.data(), end, value);
    return result.ec == std::errc() && result.ptr == end ? std::optional<T>(value) : std::nullopt;
  }
}

/// "PIX", "NV:18", "?"
std::string encode_distance(const Distance& distance);
std::optional<Distance> decode_distance(const std::string& word);

/// "nvlink gpu 0000:85:00.0 2 25"; "-" where there is nothing
std::string encode_link(const GpuLink& link);
std::optional<GpuLink> decode_link(const std::string& words);

} // namespace shmemctl::field_text
