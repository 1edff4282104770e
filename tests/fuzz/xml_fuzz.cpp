// parse_xml: any bytes give a bounded tree or an Error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/base/xml_text.h"
#include "src/model/topo/readers/xml.h"

namespace {

void check(const shmemctl::XmlElement& element, int depth) {
  if (element.name.empty() || element.line < 1 || element.column < 1 || depth > 200)
    std::abort();
  for (const shmemctl::XmlElement& child : element.children)
    check(child, depth + 1);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    check(shmemctl::parse_xml(text, "fuzz"), 1);
  } catch (const shmemctl::Error& error) {
    if (error.code() != shmemctl::ExitCode::usage)
      std::abort();
  }
  const std::string escaped = "<a b=\"" + shmemctl::xml_escape(text) + "\"/>";
  shmemctl::parse_xml(escaped, "fuzz"); // whatever was escaped is XML
  return 0;
}
