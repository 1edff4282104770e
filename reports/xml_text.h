// Text inside XML.
#pragma once

#include <string>

namespace shmemctl {

/// Text of a document as an attribute's value or between tags: safe_text(), with & < > " ' escaped.
std::string xml_text(const std::string& text);

} // namespace shmemctl
