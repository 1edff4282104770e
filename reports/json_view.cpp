#include "reports/json_view.h"

#include <cmath>
#include <fmt/format.h>

#include "reports/table.h"

namespace shmemctl::view {

using nlohmann::json;

const json& member(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object())
    return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

const json& list(const json& object, const char* key) {
  static const json none = json::array();
  const json& value = member(object, key);
  return value.is_array() ? value : none;
}

std::optional<std::string> scalar(const json& value) {
  switch (value.type()) {
  case json::value_t::string:
    return value.get<std::string>();
  case json::value_t::boolean:
    return value.get<bool>() ? "true" : "false";
  case json::value_t::number_integer:
    return std::to_string(value.get<std::int64_t>());
  case json::value_t::number_unsigned:
    return std::to_string(value.get<std::uint64_t>());
  case json::value_t::number_float:
    return decimal(value.get<double>(), 6);
  default:
    return std::nullopt;
  }
}

std::string text(const json& object, const char* key, const std::string& otherwise) {
  const std::optional<std::string> value = scalar(member(object, key));
  return value ? safe_text(*value) : otherwise;
}

std::optional<double> number(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

std::string decimal(double value, int digits) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e15)
    return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}g}", value, digits);
}

} // namespace shmemctl::view
