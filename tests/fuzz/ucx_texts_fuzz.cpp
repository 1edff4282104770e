// Keys that peers send, and what UCX prints of its lanes.
#include <cstdint>
#include <cstdlib>

#include "src/base/error.h"
#include "transports/ucx/key.h"
#include "transports/ucx/lanes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<UcxPiece> pieces = parse_key(text);
    if (to_key(pieces) != text)
      std::abort();
  } catch (const Error&) {
  }
  for (const auto& lanes : {parse_lanes(text), parse_atomics(text), parse_resources(text)}) {
    to_text(lanes);
    const auto port = only_port(lanes);
    if (port && (all_memory(lanes) || port->port < 1 || port->port > 255))
      std::abort();
  }
  return 0;
}
