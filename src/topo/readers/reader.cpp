#include "src/topo/readers/reader.h"

#include "src/base/error.h"

namespace shmemctl {

Node read_recorded(const std::string& text, const std::string& subject,
                   std::optional<TopoFormat> forced) {
  switch (forced ? *forced : detect_format(text, subject)) {
  case TopoFormat::hwloc_xml:
    return read_hwloc_xml(text, subject);
  case TopoFormat::nccl_xml:
    return read_nccl_xml(text, subject);
  case TopoFormat::nvidia_smi:
    return read_nvidia_smi(text, subject);
  case TopoFormat::report:
    return read_report(text, subject);
  }
  throw input_error(subject, "", "unknown format", "pass the format with --format");
}

} // namespace shmemctl
