// What other PEs send to connect over mlx5 queues: read without harm, and what is read is what it
// encodes to.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "transports/mlx5/wire.h"
#include "transports/rc/segment_key.h"

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
  switch (data[0] % 4) {
  case 0:
    expect_same<mlx5::Summary>(bytes);
    break;
  case 1:
    expect_same<mlx5::Hello>(bytes);
    break;
  case 2:
    expect_same<rc::QpList<mlx5::PeerInfo>>(bytes);
    break;
  default:
    expect_same<rc::SegmentKey>(bytes);
  }
  return 0;
}
