// The loader's cache and the texts of Python packages, of any bytes: nothing is read beyond them,
// and what comes out is of the form that is promised.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/instruments/libraries/installed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::libraries;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const CacheEntry& entry : parse_loader_cache(text))
    if (entry.name.empty() || entry.path.empty() || entry.path.front() != '/' ||
        entry.name.find('\0') != std::string::npos)
      std::abort();
  for (const ExactRequirement& requirement : exact_requirements(text))
    if (requirement.version.empty() || requirement.package != package_name(requirement.package) ||
        requirement.version.find_first_of("*; \n") != std::string::npos)
      std::abort();
  for (const std::string& file : recorded_libraries(text))
    if (file.front() == '/' || file.find("..") != std::string::npos ||
        file.find(".so") == std::string::npos)
      std::abort();
  return 0;
}
