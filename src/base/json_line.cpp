#include "src/base/json_line.h"

#include <nlohmann/json.hpp>

namespace shmemctl {

using nlohmann::json;

std::string json_line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json from_json_line(const std::string& text) {
  return json::parse(text);
}

json try_from_json_line(const std::string& text) {
  return json::parse(text, nullptr, false);
}

} // namespace shmemctl
