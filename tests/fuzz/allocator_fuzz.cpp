// Random calls to the allocator, each judged against a model that searches from the front.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/support/allocator_model.h"

namespace {

void require(const std::string& difference) {
  if (difference.empty())
    return;
  std::fprintf(stderr, "differs: %s\n", difference.c_str());
  std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shmemctl::test::AllocatorModel model(size > 0 ? data[0] * 64u + size % 64 : 4096);
  // Four bytes a call: what, a shift, and sixteen bits of a value.
  for (std::size_t at = 1; at + 4 <= size; at += 4) {
    const std::uint64_t value = data[at + 2] | std::uint64_t{data[at + 3]} << 8;
    switch (data[at] % 8) {
    case 0:
      require(model.free(value));
      break;
    case 1:
      require(model.grow(value));
      break;
    case 2:
      require(model.allocate(value << data[at + 1] % 52, 64));
      break;
    case 3:
      require(model.allocate(value % 4096, std::uint64_t{1} << data[at + 1] % 14));
      break;
    case 4:
    case 5:
      require(model.allocate(value % 512, 1));
      break;
    default:
      require(model.free(model.live_offset(value)));
    }
  }
  return 0;
}
