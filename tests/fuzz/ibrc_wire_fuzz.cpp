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
void expect_same(const std::string& bytes) {
  const std::optional<Value> value = from_bytes<Value>(bytes);
  if (value && to_bytes(*value) != bytes)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
  case 0:
    expect_same<ibrc::Summary>(bytes);
    break;
  case 1:
    expect_same<ibrc::Hello>(bytes);
    break;
  case 2:
    expect_same<rc::QpList<ibrc::QpName>>(bytes);
    break;
  case 3:
    expect_same<ibrc::Attempt>(bytes);
    break;
  case 4:
    expect_same<rc::SegmentKey>(bytes);
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
