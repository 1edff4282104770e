// JSON on one line, as the PEs of a job tell it to each other. Compiled once: a file that parses or
// prints JSON by its templates takes twice as long to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shmemctl {

/// On one line; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::json& value);
/// Throws nlohmann::json::parse_error.
nlohmann::json from_json_line(const std::string& text);
/// A discarded value if it is not JSON.
nlohmann::json try_from_json_line(const std::string& text);

} // namespace shmemctl
