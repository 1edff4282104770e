// Reads JSON that may lack anything: a missing member, or one of another type, reads as empty.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace shmemctl::view {

/// The member, or JSON null.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
/// The member if it is a list, else an empty list.
const nlohmann::json& list(const nlohmann::json& object, const char* key);
/// A string, a number (if not an integer, decimal() with six digits), true or false, as text; empty
/// for anything else. Not escaped: the bytes of the document.
std::optional<std::string> scalar(const nlohmann::json& value);
/// The member as safe text, `otherwise` if it is missing or not a scalar().
std::string text(const nlohmann::json& object, const char* key, const std::string& otherwise = "");
std::optional<double> number(const nlohmann::json& object, const char* key);
/// "12.5", "0.003", "400": `digits` significant digits, no trailing zeros. From 1000 on, rounded to
/// an integer.
std::string decimal(double value, int digits = 4);

} // namespace shmemctl::view
