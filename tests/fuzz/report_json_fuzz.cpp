// A report of any bytes: read as a node it gives a model or an Error, and a model that was read
// prints and reads back the same.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reports/text.h"
#include "src/base/error.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  try {
    const Node node = read_report(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    Report report;
    report.topology = topology_json(node);
    if (!same_model(node, node_from_json(report.topology, "again")))
      std::abort();
    std::ostringstream out;
    write_text(out, report, {});
    if (out.str().empty())
      std::abort();
  } catch (const Error& error) {
    if (error.message().find('\n') != std::string::npos || error.code() != ExitCode::usage)
      std::abort();
  }
  return 0;
}
