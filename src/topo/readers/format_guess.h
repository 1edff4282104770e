// Cheap looks at a text, to tell formats apart before one is parsed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shmemctl {

/// Offset of the first character that is neither white space nor a byte order mark, or npos.
std::size_t first_character(std::string_view text);

struct XmlStart {
  std::string name;       ///< "" if there is no element
  std::size_t offset = 0; ///< of its "<"
};
/// The root element's name, past declarations, comments and DOCTYPE.
XmlStart xml_root(std::string_view text);

/// True if some line starts with the columns of `nvidia-smi topo`: GPU0 first, terminal escapes
/// aside.
bool has_matrix_header(std::string_view text);

} // namespace shmemctl
