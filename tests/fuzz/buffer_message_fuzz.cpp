// Bytes that arrive at the socket of a PE's registered buffers, and the kernel's list of mappings.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/runtime/buffers/message.h"
#include "src/runtime/memory/buffers/address_map.h"
#include "src/runtime/memory/siphash.h"

namespace {

constexpr shmemctl::JobSecret secret{1, 2, 3};

void require(bool condition) {
  if (!condition)
    std::abort();
}

/// Whatever is accepted is written back as the same bytes.
void read_message(const std::string& bytes) {
  using namespace shmemctl::buffers;
  if (const auto request = decode_request(bytes.data(), bytes.size(), secret))
    require(encode(*request, secret) == bytes);
  if (const auto answer = decode_response(bytes.data(), bytes.size(), secret)) {
    require(encode(*answer, secret) == bytes);
    for (const FilePart& part : answer->parts)
      require(part.file < answer->descriptors);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read_message(bytes);
  for (const shmemctl::MappedArea& area : shmemctl::parse_address_map(bytes))
    require(area.pages.begin < area.pages.end);
  // The same with a good signature, which no mutation would find.
  const std::uint64_t signature = shmemctl::siphash(secret, bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(&signature), sizeof signature);
  read_message(bytes);
  return 0;
}
