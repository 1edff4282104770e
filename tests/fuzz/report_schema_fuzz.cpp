// The bytes choose a document that the report's schema describes: if the validator accepts it, it
// is read, also row by row, and every writer renders it well-formed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "reports/report_file.h"
#include "reports/validate.h"
#include "src/base/error.h"
#include "tests/support/every_writer.h"
#include "tests/support/schema_sampler.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  std::size_t used = 0;
  const auto choose = [&](std::uint64_t limit) -> std::uint64_t {
    return used < size ? data[used++] % limit
                       : 0; // no list of choices is longer than a byte counts
  };
  static const nlohmann::json schema = nlohmann::json::parse(report_schema_text());
  const nlohmann::json document = SchemaSampler(schema, choose).document();
  if (!validate_report(document).empty())
    return 0;
  try {
    const Report report = report_from_json(document, "fuzz");
    if (to_json(parse_report(to_text(document), "fuzz")) != to_json(report))
      std::abort();
    if (const std::string problem = malformed(report); !problem.empty()) {
      std::fprintf(stderr, "%s\n", problem.c_str());
      std::abort();
    }
  } catch (const Error&) { // a whole number that no type holds
  }
  return 0;
}
