// A PCI function's configuration space of any bytes and any length.
#include <cstdint>
#include <cstdlib>

#include "src/instruments/doctor/pcie.h"

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shmemctl::doctor::ConfigSpace space(std::string(reinterpret_cast<const char*>(data), size));
  for (unsigned id = 0; id < 256; ++id)
    if (const auto at = space.capability(static_cast<std::uint8_t>(id)))
      require(*at >= 0x40 && *at < 0x100 && data[*at] == id);
  for (const std::uint16_t id : {0x0001, 0x000d, 0x0010})
    if (const auto at = space.extended_capability(id))
      require(*at >= 0x100 && *at + 4 <= size);
  if (const auto control = space.device_control()) {
    const int bytes = shmemctl::doctor::max_read_request_bytes(*control);
    require(bytes >= 128 && bytes <= 16384);
  }
  require(size > 0x106 || !space.acs_control());
  require(space.word(size) == std::nullopt);
  return 0;
}
