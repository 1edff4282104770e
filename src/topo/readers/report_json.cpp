// A recorded node from a shmemctl report.
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/report_schema.h"
#include "src/topo/readers/reader.h"
#include "src/topo/writers/writer.h"

namespace shmemctl {

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
