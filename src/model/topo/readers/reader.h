// Reads a Node from a recorded file of any format, or from this machine.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"
#include "src/model/topo/node.h"

namespace shmemctl {

/// Offset of the first character that is neither white space nor a byte order mark, or npos.
std::size_t first_character(std::string_view text);

struct XmlStart {
  std::string name;       ///< "" if there is no element
  std::size_t offset = 0; ///< offset of its "<"
};
/// The root element's name, past declarations, comments and DOCTYPE.
XmlStart xml_root(std::string_view text);

/// True if some line starts with the columns of `nvidia-smi topo`: GPU0 first, terminal escapes
/// aside.
bool has_matrix_header(std::string_view text);

enum class TopoFormat { hwloc_xml, nccl_xml, nvidia_smi, report };
const char* to_string(TopoFormat format); ///< "hwloc-xml", "nccl-xml", "nvidia-smi", "report"
std::optional<TopoFormat> parse_topo_format(std::string_view name);

/// Recognises a format by content (not by the file's name). Throws Error (usage) if it is unknown.
TopoFormat detect_format(const std::string& text, const std::string& subject);

/// Reads a recorded node. All of them throw Error (usage) with line and column, or a JSON pointer,
/// for input that is truncated, malformed, not UTF-8, nested too deep or of another kind.
/// @param subject the file's name, for messages
Node read_hwloc_xml(const std::string& text, const std::string& subject);
Node read_nccl_xml(const std::string& text, const std::string& subject);
Node read_nvidia_smi(const std::string& text, const std::string& subject);
Node read_report(const std::string& text, const std::string& subject);
Node read_recorded(const std::string& text, const std::string& subject,
                   std::optional<TopoFormat> forced = std::nullopt);

/// Reads the machine under `sysroot` from sysfs and /proc; if it is live, CPUs and NUMA nodes are
/// read through hwloc, and GPUs also through NVML. Never throws for missing data.
Node read_machine(const Sysroot& sysroot);
/// As above, but uses this NVML library, whatever the root is.
Node read_machine(const Sysroot& sysroot, const std::string& nvml_library);

} // namespace shmemctl
