// The texts below /proc that tell how much memory there is, and a program's notes.
#include <cstdint>
#include <string_view>

#include "src/runtime/memory/available_memory.h"
#include "src/runtime/memory/static_data.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  shmemctl::number_of(text, "MemAvailable:");
  for (const char* controller : {"", "memory"}) {
    shmemctl::cgroup_path(text, controller);
    shmemctl::cgroup_mount(text, controller);
  }
  shmemctl::find_build_id({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
