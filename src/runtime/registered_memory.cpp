#include "src/runtime/registered_memory.h"

#include <cerrno>
#include <string>
#include <sys/mman.h>

#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/base/round_up.h"
#include "src/runtime/memory/buffers/address_map.h"

namespace shmemctl {

static void serialize(Archive& archive, BufferDescriptor& descriptor) {
  archive(descriptor.magic, descriptor.pe, descriptor.slot, descriptor.writable,
          descriptor.generation, descriptor.address, descriptor.size_bytes, descriptor.on_gpu,
          descriptor.signature);
}

namespace {

/// The message of each PE to the others.
struct Registration {
  std::string problem; ///< why that PE could not register its memory; "" if it could
  BufferDescriptor descriptor;
};
void serialize(Archive& archive, Registration& registration) {
  archive(registration.problem, registration.descriptor);
}

} // namespace

RegisteredMemory::RegisteredMemory(Runtime& runtime, std::size_t size_bytes)
    // Whole pages, which can be shared even if the kernel cannot block writes during the
    // replacement.
    : runtime_(runtime), size_bytes_(round_up(size_bytes, page_bytes())) {
  Registration own;
  try {
    map_and_register();
    own.descriptor = runtime.buffers().describe(handle_);
  } catch (const Error& error) {
    own.problem = error.message();
  }
  // All PEs learn of the first PE that failed, so that none waits for it.
  const std::vector<std::string> messages = runtime.gather_text(to_bytes(own));
  for (std::size_t pe = 0; pe < messages.size(); ++pe) {
    const auto registration = value_of_pe<Registration>(messages[pe], pe, "registered buffer");
    if (!registration.problem.empty()) {
      if (own.problem.empty())
        release();
      throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "register memory",
                  registration.problem,
                  "free memory on the host of that PE, or pass a smaller size");
    }
    descriptors_.push_back(registration.descriptor);
  }
}

void RegisteredMemory::map_and_register() {
  void* const memory =
      mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw system_error(std::to_string(size_bytes_) + " bytes of memory", "allocate", errno,
                       "pass a smaller size, or free memory on the host");
  memory_ = static_cast<std::byte*>(memory);
  try {
    handle_ = runtime_.buffers().add(memory_, size_bytes_);
  } catch (...) {
    munmap(memory_, size_bytes_);
    memory_ = nullptr;
    throw;
  }
}

void RegisteredMemory::release() {
  runtime_.buffers().remove(handle_);
  munmap(memory_, size_bytes_);
  memory_ = nullptr;
}

RegisteredMemory::~RegisteredMemory() = default;

void RegisteredMemory::free() {
  for (const BufferDescriptor& descriptor : descriptors_)
    runtime_.buffers().close(descriptor); // otherwise the memory would stay in use
  runtime_.gather_text(""); // a barrier: no PE begins another operation on this memory
  release();
}

std::string no_buffers_reason(Runtime& runtime, int pe) {
  if (runtime.teams().translate(team_world, pe, team_shared) >= 0)
    return "";
  return "PE " + std::to_string(runtime.pe()) + " shares no memory with PE " + std::to_string(pe) +
         ", and registered buffers are reached within a node only";
}

} // namespace shmemctl
