// Answers of the kernel's DCB interface, of any bytes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/instruments/doctor/dcb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::doctor;
  const auto settings =
      parse_dcb_reply(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!settings)
    return 0;
  if (settings->lossless_priorities && priorities_text(*settings->lossless_priorities).empty())
    std::abort();
  if (settings->classes && classes_text(*settings->classes).empty())
    std::abort();
  return 0;
}
