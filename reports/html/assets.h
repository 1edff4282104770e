// Files that CMake embeds for the page: our script and style, and the distribution's charting
// library with its licence. The hashes are SHA-256 in hexadecimal digits.
#pragma once

#include <string>

namespace shmemctl::html {

std::string page_script();
std::string page_script_sha256();
std::string page_style();
std::string page_style_sha256();
std::string chart_library();
std::string chart_library_sha256();
std::string chart_licence();
std::string chart_licence_sha256();

} // namespace shmemctl::html
