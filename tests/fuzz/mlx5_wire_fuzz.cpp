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
void expect_same(const std::optional<Value>& value, const std::string& bytes) {
  if (value && encode(*value) != bytes)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
  case 0:
    expect_same(mlx5::decode_summary(bytes), bytes);
    break;
  case 1:
    expect_same(mlx5::decode_hello(bytes), bytes);
    break;
  case 2:
    expect_same(mlx5::decode_queue_names(bytes), bytes);
    break;
  default:
    expect_same(rc::decode_segment_key(bytes, mlx5::wire_limits::ports), bytes);
  }
  return 0;
}
