// A page model as one HTML file that needs nothing beside it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shmemctl::html {

/// The page. Its content security policy lets only our script, the charting library and our style
/// run, by their hashes, and nothing be fetched.
std::string write_html(const nlohmann::json& model);

/// JSON for a <script> element: ASCII only, and without <, > and &, so that no text in it can end
/// the element or begin a comment. Bytes that are not UTF-8 become U+FFFD.
std::string script_json(const nlohmann::json& value);

/// Base64 of the bytes that a text of hexadecimal digits stands for.
std::string base64_of_hex(const std::string& digits);

} // namespace shmemctl::html
