#include "src/bench/arena_memory.h"

#include <cstring>
#include <vector>

#include "src/bench/job_memory.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

ArenaMemory::ArenaMemory(Runtime& runtime, MemoryKind kind, std::size_t size_bytes,
                         const char* purpose)
    : runtime_(runtime), kind_(kind), address_(nullptr), size_bytes_(size_bytes) {
  if (kind == MemoryKind::host) {
    address_ = allocate_symmetric(runtime, size_bytes, purpose);
    return;
  }
  if (!runtime.gpu())
    throw Error(ExitCode::unavailable, "PE " + std::to_string(runtime.pe()), "use its GPU heap",
                "it has no GPU heap", "run it on a node with GPUs");
  address_ = allocate_on_gpu(*runtime.gpu(), size_bytes, purpose);
}

void ArenaMemory::clear(std::size_t size_bytes) {
  if (kind_ == MemoryKind::gpu)
    runtime_.gpu()->fill(address_, 0, size_bytes);
  else
    std::memset(address_, 0, size_bytes);
}

void ArenaMemory::look_at(std::size_t size_bytes,
                          const std::function<void(std::byte*, std::size_t)>& look) {
  if (kind_ == MemoryKind::host)
    return look(address_, size_bytes);
  std::vector<std::byte> copy(size_bytes);
  runtime_.gpu()->copy(copy.data(), address_, size_bytes);
  look(copy.data(), size_bytes);
  runtime_.gpu()->copy(address_, copy.data(), size_bytes);
}

void ArenaMemory::free() {
  if (kind_ == MemoryKind::gpu)
    runtime_.gpu()->free(address_);
  else
    runtime_.free(address_);
  address_ = nullptr;
}

} // namespace shmemctl::bench
