// A report of any bytes: the validator and the reader agree, and what is read prints every way.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reports/csv.h"
#include "reports/junit.h"
#include "reports/prometheus.h"
#include "reports/text.h"
#include "reports/validate.h"
#include "src/base/error.h"
#include "src/base/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  nlohmann::json document;
  try {
    document = parse_json(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const Error&) {
    return 0;
  }
  const bool valid = validate_report(document).empty();
  try {
    const Report report = report_from_json(document, "fuzz");
    if (!valid)
      std::abort();
    // What a newer minor version adds below topology, mapping or hosts is kept as it is, and this
    // version's schema does not know it.
    const bool ours = document["schema"]["version"] == report_schema_version;
    if (ours && !validate_report(to_json(report)).empty())
      std::abort();
    std::ostringstream out;
    TextStyle style;
    style.verbose = true;
    style.width = 60;
    write_text(out, report, style);
    if (out.str().empty() || write_csv(report).empty() || write_junit(report).empty() ||
        write_prometheus(report).empty())
      std::abort();
  } catch (const Error& error) {
    if (error.message().find('\n') != std::string::npos || error.code() != ExitCode::usage)
      std::abort();
  }
  return 0;
}
