#include "transports/ibrc/staging.h"

#include <cerrno>
#include <sys/mman.h>

namespace shmemctl::ibrc {

namespace {

constexpr std::size_t words_bytes = 4096;
constexpr std::size_t all_bytes = Staging::slots * Staging::slot_bytes + words_bytes;

} // namespace

void Staging::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, all_bytes);
}

Staging::Staging(const JobView& job) {
  void* memory =
      ::mmap(nullptr, all_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw system_error("memory for staged transfers", "map", errno, "free memory on this host");
  memory_.reset(static_cast<std::byte*>(memory));
  for (const UsedDevice& used : job.devices)
    handles_.push_back(verbs::register_memory(*used.device, memory, all_bytes,
                                              verbs::MemoryKind::host, {},
                                              "memory for staged transfers"));
  for (std::int16_t slot = slots; slot-- > 0;)
    free_.push_back(slot);
}

} // namespace shmemctl::ibrc
