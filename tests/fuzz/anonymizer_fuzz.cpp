// Texts of any bytes: the same text becomes the same, and no name remains where it is whole.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/instruments/gather/anonymizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  gather::Anonymizer names(Secret{1, 2, 3});
  names.add_host("gpu-node-07");
  names.add_user("ann");
  const std::string text = names.text(bytes), path = names.path(bytes);
  if (names.text(bytes) != text || names.path(bytes) != path)
    std::abort();
  // An address may come out shorter or longer (IPv6), each by less than its greatest length.
  if (text.size() > 20 * size + 64 || path.size() > 20 * size + 64)
    std::abort();
  if (names.path("/home/ann/" + bytes).rfind("/home/user1/", 0) != 0)
    std::abort();
  return 0;
}
