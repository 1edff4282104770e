#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/model/topo/pci_address.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = shmemctl::parse_pci_address(text);
  // What was read must be written and read again as the same.
  if (address && shmemctl::parse_pci_address(shmemctl::to_string(*address)) != address)
    std::abort();
  return 0;
}
