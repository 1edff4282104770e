// Integers read from JSON, and JSON on one line.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace shmemctl {

// Reads integers from JSON. The JSON library's own get<int>() casts any number: a value that is too
// large for the type becomes another one, or is undefined behaviour.

/// `value` as a T, if it is an integer (3 or 3.0) that T can hold.
template <class T>
std::optional<T> whole_number(const nlohmann::json& value) {
  const auto fitting = [](auto number) {
    return std::in_range<T>(number) ? std::optional<T>(static_cast<T>(number)) : std::nullopt;
  };
  if (value.is_number_unsigned())
    return fitting(value.get<std::uint64_t>());
  if (value.is_number_integer())
    return fitting(value.get<std::int64_t>());
  if (!value.is_number_float())
    return std::nullopt;
  const auto number = value.get<double>();
  constexpr double exact_below = 9.0e15; // doubles represent every integer up to 2^53
  if (!(std::abs(number) < exact_below) || number != std::trunc(number))
    return std::nullopt;
  return fitting(static_cast<std::int64_t>(number));
}

/// Like whole_number(), but throws std::out_of_range if `value` is not such an integer.
template <class T>
T require_whole_number(const nlohmann::json& value) {
  if (const std::optional<T> number = whole_number<T>(value))
    return *number;
  throw std::out_of_range("not a whole number that fits");
}

// JSON on one line, as the PEs of a job exchange it. Compiled once: a file that parses or
// prints JSON by its templates takes twice as long to compile.

/// `value` on one line; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::json& value);
/// The parsed value. Throws nlohmann::json::parse_error if `text` is not JSON.
nlohmann::json from_json_line(const std::string& text);
/// The parsed value; if `text` is not JSON, one for which is_discarded() is true.
nlohmann::json try_from_json_line(const std::string& text);

} // namespace shmemctl
