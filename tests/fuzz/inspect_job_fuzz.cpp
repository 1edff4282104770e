// What other nodes send of their processes: any bytes end in a joined report or in an error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/instruments/inspect/job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::inspect;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto part = shmemctl::from_bytes<HostInspection>(bytes);
  if (!part)
    return 0;
  if (shmemctl::to_bytes(*part) != bytes)
    std::abort();
  try {
    for (const bool whole : {false, true}) {
      const JobInspection joined = join_hosts({*part, *part}, whole);
      if (joined.counters.size() != 2 * part->counters.size())
        std::abort();
      for (const auto& process : joined.processes)
        if (!process.contains("host"))
          std::abort();
    }
  } catch (const shmemctl::Error&) {
  }
  return 0;
}
