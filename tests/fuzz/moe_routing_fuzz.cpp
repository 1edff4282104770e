// Routing files: any bytes give an Error, or a routing that is legal and writes itself again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/model/moe/oracle.h"
#include "src/model/moe/routing_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::moe;
  RecordedRouting read;
  try {
    read = parse_routing_file(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const shmemctl::Error&) {
    return 0;
  }
  validate_routing(read.shape, read.routing, "fuzz"); // what was read must be legal: else a crash
  row_counts(read.shape, read.routing);
  const RecordedRouting again =
      parse_routing_file(routing_file_text(read.shape, read.routing), "again");
  if (routing_hash(again.shape, again.routing) != routing_hash(read.shape, read.routing))
    std::abort();
  return 0;
}
