// A report of any bytes: the validator and the reader agree, and what is read prints every way.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/report_file.h"
#include "reports/validate.h"
#include "src/base/error.h"
#include "src/base/input.h"
#include "tests/support/every_writer.h"

namespace {

/// Whether it can be read row by row, from its text.
bool is_read_by_rows(const std::string& text) {
  try {
    shmemctl::parse_report(text, "fuzz");
    return true;
  } catch (const shmemctl::Error&) {
    return false;
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  nlohmann::json document;
  try {
    document = parse_json(text, "fuzz");
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
    if (!malformed(report).empty() || !(to_json(parse_report(text, "fuzz")) == to_json(report)))
      std::abort();
  } catch (const Error& error) {
    if (is_read_by_rows(text))
      std::abort();
    if (error.message().find('\n') != std::string::npos || error.code() != ExitCode::usage)
      std::abort();
  }
  return 0;
}
