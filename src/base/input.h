// Reads files that somebody hands us, with memory bounded whatever they hold.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shmemctl {

/// No input file of ours is larger; a larger one is refused before it is read.
inline constexpr std::size_t max_input_bytes = std::size_t{64} << 20;
/// No JSON or XML document of ours nests deeper.
inline constexpr int max_nesting = 200;

/// The whole of `path` ("-" is stdin). Throws Error (usage): missing, unreadable, a folder, larger
/// than `max_bytes`.
std::string read_input(const std::string& path, std::size_t max_bytes = max_input_bytes);

/// Parses JSON with nesting limited to max_nesting. Throws Error (usage) with line and column.
/// @param subject the file's name, for the message
nlohmann::json parse_json(const std::string& text, const std::string& subject);

} // namespace shmemctl
