// Reads a Node from a recorded file of any format, or from this machine.
#include "src/model/topo/readers/reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/report_schema.h"
#include "src/base/text.h"
#include "src/model/topo/readers/nvidia_smi.h"
#include "src/model/topo/writers/writer.h"

namespace shmemctl {

namespace {

/// Offset after the comment, processing instruction or declaration (<!--, <?, <!) that begins at
/// `at`; npos if it is not terminated.
std::size_t past_markup(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const std::string_view end = starts_with(rest, "<!--") ? "-->"
                               : starts_with(rest, "<?") ? "?>"
                                                         : ">";
  const std::size_t found = text.find(end, at + 2);
  return found == std::string_view::npos ? found : found + end.size();
}

} // namespace

std::size_t first_character(std::string_view text) {
  const std::size_t mark = starts_with(text, "\xef\xbb\xbf") ? 3 : 0;
  return text.find_first_not_of(" \t\r\n\f\v", mark);
}

XmlStart xml_root(std::string_view text) {
  XmlStart root;
  std::size_t at = text.find('<');
  while (at != std::string_view::npos && at + 1 < text.size()) {
    root.offset = at;
    if (text[at + 1] != '?' && text[at + 1] != '!') {
      const std::size_t end = text.find_first_of(" \t\r\n/><", at + 1);
      root.name = std::string(text.substr(at + 1, std::min(end, text.size()) - at - 1));
      return root;
    }
    const std::size_t past = past_markup(text, at);
    at = past == std::string_view::npos ? past : text.find('<', past);
  }
  return root;
}

bool has_matrix_header(std::string_view text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    // A header is the first relevant line of the file; a long line is not a header.
    const std::string_view line = text.substr(begin, std::min<std::size_t>(end - begin, 65536));
    if (line.find("GPU0") != std::string_view::npos) {
      const auto words = split_blanks(smi::plain_text(line));
      if (!words.empty() && words.front() == "GPU0")
        return true;
    }
    begin = end + 1;
  }
  return false;
}

namespace {

constexpr TopoFormat all_formats[] = {TopoFormat::hwloc_xml, TopoFormat::nccl_xml,
                                      TopoFormat::nvidia_smi, TopoFormat::report};
const char* const fix_of_input =
    "use hwloc XML (lstopo), NCCL topology XML (NCCL_TOPO_DUMP_FILE), the output "
    "of `nvidia-smi topo -m`, or a shmemctl report";

TopoFormat detect_xml(const std::string& text, const std::string& subject) {
  const XmlStart root = xml_root(text);
  const std::string position = position_of(text, root.offset);
  if (root.name == "topology")
    return TopoFormat::hwloc_xml;
  if (root.name == "system")
    return TopoFormat::nccl_xml;
  if (root.name == "graphs")
    throw input_error(
        subject, position,
        "this is an NCCL graph file (<graphs>), which holds channels and no topology",
        "set NCCL_TOPO_DUMP_FILE, run any NCCL job, and pass the file that it writes");
  if (root.name.empty())
    throw input_error(subject, position, "XML without an element", fix_of_input);
  throw input_error(subject, position,
                    "unknown XML format with root <" + printable(root.name, 40) + ">",
                    fix_of_input);
}

TopoFormat detect_json(const std::string& text, const std::string& subject) {
  const nlohmann::json document = parse_json(text, subject);
  const auto schema = document.is_object() ? document.find("schema") : document.end();
  if (document.is_object() && schema != document.end() && schema->is_object() &&
      schema->value("name", nlohmann::json()) == "shmemctl.report")
    return TopoFormat::report;
  throw input_error(subject, "",
                    "JSON, but not a shmemctl report (schema.name is not shmemctl.report)",
                    fix_of_input);
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
    throw input_error(subject, "line 1, column 1", "the file is empty", fix_of_input);
  if (text[first] == '<')
    return detect_xml(text, subject);
  if (text[first] == '{')
    return detect_json(text, subject);
  if (has_matrix_header(text))
    return TopoFormat::nvidia_smi;
  throw input_error(subject, position_of(text, first), "unknown format", fix_of_input);
}

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

Node read_report(const std::string& text, const std::string& subject) {
  const nlohmann::json document = parse_json(text, subject);
  const std::string notice = require_report_schema(document, subject);
  const auto topology = document.find("topology");
  if (topology == document.end() || topology->is_null())
    throw input_error(subject, "/topology", "the report has no topology",
                      "pass a report of shmemctl topo");
  Node node = node_from_json(*topology, subject);
  node.format = "report";
  if (!notice.empty())
    node.notes.push_back(notice);
  return node;
}

} // namespace shmemctl
