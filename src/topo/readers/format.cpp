#include "src/topo/readers/reader.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/topo/readers/format_guess.h"

namespace shmemctl {

namespace {

constexpr TopoFormat all_formats[] = {TopoFormat::hwloc_xml, TopoFormat::nccl_xml,
                                      TopoFormat::nvidia_smi, TopoFormat::report};
const char* const fix =
    "give hwloc XML (lstopo), NCCL topology XML (NCCL_TOPO_DUMP_FILE), the text "
    "of `nvidia-smi topo -m`, or a shmemctl report";

TopoFormat detect_xml(const std::string& text, const std::string& subject) {
  const XmlStart root = xml_root(text);
  const std::string position = position_of(text, root.offset);
  if (root.name == "topology")
    return TopoFormat::hwloc_xml;
  if (root.name == "system")
    return TopoFormat::nccl_xml;
  if (root.name == "graphs")
    throw input_error(subject, position,
                      "this is an NCCL graph file (<graphs>), which holds rings and no topology",
                      "dump the topology with NCCL_TOPO_DUMP_FILE");
  if (root.name.empty())
    throw input_error(subject, position, "XML without an element", fix);
  throw input_error(subject, position,
                    "unknown XML format with root <" + printable(root.name, 40) + ">", fix);
}

TopoFormat detect_json(const std::string& text, const std::string& subject) {
  const nlohmann::json document = parse_json(text, subject);
  const auto schema = document.is_object() ? document.find("schema") : document.end();
  if (document.is_object() && schema != document.end() && schema->is_object() &&
      schema->value("name", nlohmann::json()) == "shmemctl.report")
    return TopoFormat::report;
  throw input_error(subject, "", "JSON, but not a shmemctl report (no schema.name)", fix);
}

} // namespace

const char* to_string(TopoFormat format) {
  switch (format) {
  case TopoFormat::hwloc_xml:
    return "hwloc-xml";
  case TopoFormat::nccl_xml:
    return "nccl-xml";
  case TopoFormat::nvidia_smi:
    return "nvidia-smi";
  case TopoFormat::report:
    return "report";
  }
  return "unknown";
}

std::optional<TopoFormat> parse_topo_format(std::string_view name) {
  for (const TopoFormat format : all_formats)
    if (name == to_string(format))
      return format;
  return std::nullopt;
}

TopoFormat detect_format(const std::string& text, const std::string& subject) {
  const std::size_t first = first_character(text);
  if (first == std::string::npos)
    throw input_error(subject, "line 1, column 1", "the file is empty", fix);
  if (text[first] == '<')
    return detect_xml(text, subject);
  if (text[first] == '{')
    return detect_json(text, subject);
  if (has_matrix_header(text))
    return TopoFormat::nvidia_smi;
  throw input_error(subject, position_of(text, first), "unknown format", fix);
}

} // namespace shmemctl
