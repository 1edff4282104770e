// SHMEM_SYMMETRIC_SIZE: any text is a size below 2^62, or none.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "src/runtime/shmem/environment.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto bytes = shmemctl::api::parse_symmetric_size(text);
  if (bytes && *bytes >= std::uint64_t{1} << 62)
    std::abort();
  // What is behind the letter is ignored.
  if (bytes && !text.empty() && shmemctl::api::parse_symmetric_size(text + "k") &&
      (text.back() >= 'a' && text.back() <= 'z') &&
      shmemctl::api::parse_symmetric_size(text + "k") != bytes)
    std::abort();
  return 0;
}
