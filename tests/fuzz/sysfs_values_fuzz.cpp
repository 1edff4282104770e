// The parsers of sysfs attribute files: any bytes give a value in its range, or nothing.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/units.h"
#include "src/model/topo/readers/sysfs.h"

namespace {

using namespace shmemctl;

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  parse_port_state(text);
  parse_link_layer(text);
  if (const auto rate_Gbps = parse_rate_Gbps(text))
    require(*rate_Gbps > 0 && *rate_Gbps <= 1e6);
  if (const auto lid = parse_lid(text))
    require(*lid >= 0 && *lid <= 0xffff);
  if (const auto gid = parse_gid(text))
    require(gid->size() == 39 && parse_gid(*gid) == gid);
  if (const auto width = parse_link_width(text))
    require(*width >= 1 && *width <= 32);
  if (const auto speed_GTps = parse_link_speed_GTps(text))
    require(*speed_GTps > 0);
  if (const auto bytes = parse_memory_total_bytes(text))
    require(*bytes % 1024 == 0);
  if (const auto field = parse_field(text, "Node"))
    require(field->size() < size);
  return 0;
}
