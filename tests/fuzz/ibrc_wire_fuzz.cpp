// What other PEs send to connect, and the network of an option: read without harm, and what is read
// is what it encodes to.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "transports/ibrc/wire.h"
#include "transports/rc/segment_key.h"
#include "transports/verbs/gid.h"

using namespace shmemctl;

namespace {

template <class Value>
void expect_same(const std::optional<Value>& value, const std::string& bytes) {
  if (value && encode(*value) != bytes)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
  case 0:
    expect_same(ibrc::decode_summary(bytes), bytes);
    break;
  case 1:
    expect_same(ibrc::decode_hello(bytes), bytes);
    break;
  case 2:
    expect_same(ibrc::decode_queue_pair_names(bytes), bytes);
    break;
  case 3:
    expect_same(ibrc::decode_attempt(bytes), bytes);
    break;
  case 4:
    expect_same(rc::decode_segment_key(bytes, ibrc::wire_limits::ports), bytes);
    break;
  default:
    try {
      if (const auto range = verbs::parse_address_range(bytes))
        if (!range->contains(range->network) || range->bits < 1 || range->bits > 128)
          std::abort();
    } catch (const Error&) {
    }
  }
  return 0;
}
