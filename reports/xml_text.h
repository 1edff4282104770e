// Text inside XML.
#pragma once

#include <string>

namespace shmemctl {

/// With & < > " ' escaped, and nothing else changed.
std::string markup_escaped(const std::string& text);
/// Text of a document as an attribute's value or between tags: safe_text(), escaped.
std::string xml_text(const std::string& text);

} // namespace shmemctl
