// read_recorded: any bytes are taken for one of the formats, or refused.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/model/topo/readers/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const TopoFormat format = detect_format(text, "fuzz");
    if (read_recorded(text, "fuzz").format != to_string(format))
      std::abort();
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage)
      std::abort();
  }
  return 0;
}
