// Text inside XML and HTML.
#pragma once

#include <string>

namespace shmemctl {

/// `text` as an attribute's value in double quotes or between tags, valid for any XML 1.0 parser:
/// markup is escaped, and so are tabs and line ends, which a parser would turn into blanks inside
/// an attribute. Characters that XML 1.0 cannot represent (other controls, U+FFFE, U+FFFF) become
/// U+FFFD, and so do those that a terminal acts on (is_hostile(): hwloc's and NCCL's readers do not
/// know references to them) and bytes that are not UTF-8.
std::string xml_escape(const std::string& text);

} // namespace shmemctl
