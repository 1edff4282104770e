// Integers read from JSON, and JSON on one line.
#include "src/base/json_values.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace shmemctl {

using nlohmann::json;

std::string json_line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {

/// The parser takes a NUL byte for the end of the text and ignores the rest: a text that contains
/// one is replaced by one that is not JSON.
std::string_view without_nul(const std::string& text) {
  return text.find('\0') == std::string::npos ? std::string_view(text) : std::string_view("\x01");
}

} // namespace

json from_json_line(const std::string& text) {
  return json::parse(without_nul(text));
}

json try_from_json_line(const std::string& text) {
  return json::parse(without_nul(text), nullptr, false);
}

} // namespace shmemctl
