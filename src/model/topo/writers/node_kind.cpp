#include "src/model/topo/writers/node_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "src/base/hash.h"
#include "src/base/json_values.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Keys that may differ between nodes of one kind; speed_GTps because the links of idle GPUs run at
/// a lower speed.
constexpr std::array own_keys = {
    std::string_view("hostname"),   std::string_view("uuid"),         std::string_view("node_guid"),
    std::string_view("gids"),       std::string_view("lid"),          std::string_view("notes"),
    std::string_view("speed_GTps"), std::string_view("memory_bytes"), std::string_view("remarks")};

bool is_own(const std::string& key) {
  return ends_with(key, "_origin") || ends_with(key, "_reason") ||
         std::find(own_keys.begin(), own_keys.end(), key) != own_keys.end();
}

json of_kind(const json& value) {
  json kept = value;
  if (value.is_array()) {
    for (json& item : kept)
      item = of_kind(item);
    return kept;
  }
  if (!value.is_object())
    return kept;
  kept = json::object();
  for (const auto& [key, member] : value.items())
    if (!is_own(key))
      kept[key] = of_kind(member);
  return kept;
}

} // namespace

std::string node_kind(const json& topology, const json& mapping) {
  std::string text;
  for (const std::uint8_t byte : sha256(json_line({of_kind(topology), of_kind(mapping)})))
    text += fmt::format("{:02x}", byte);
  return text;
}

} // namespace shmemctl
