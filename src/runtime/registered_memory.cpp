#include "src/runtime/registered_memory.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/mman.h>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/round_up.h"
#include "src/base/text.h"
#include "src/memory/buffers/address_map.h"

namespace shmemctl {

namespace {

/// What a PE's text begins with that is no descriptor.
constexpr std::string_view failure_mark = "failed: ";

std::string to_hex(const BufferDescriptor& descriptor) {
  unsigned char bytes[sizeof descriptor];
  std::memcpy(bytes, &descriptor, sizeof descriptor);
  std::string text;
  for (const unsigned char byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

BufferDescriptor from_hex(const std::string& text, std::size_t pe) {
  unsigned char bytes[sizeof(BufferDescriptor)];
  bool valid = text.size() == 2 * sizeof bytes;
  for (std::size_t i = 0; valid && i < sizeof bytes; ++i) {
    const std::string_view digits = std::string_view(text).substr(2 * i, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), bytes[i], 16);
    valid = error == std::errc() && end == digits.data() + digits.size();
  }
  if (!valid)
    throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "read its buffer descriptor",
                "malformed message", "run the same version of shmemctl on all hosts");
  BufferDescriptor descriptor;
  std::memcpy(&descriptor, bytes, sizeof descriptor);
  return descriptor;
}

} // namespace

RegisteredMemory::RegisteredMemory(Runtime& runtime, std::size_t size_bytes)
    // Whole pages: they can be shared where the kernel does not hold up writes meanwhile.
    : runtime_(runtime), size_bytes_(round_up(size_bytes, page_bytes())) {
  std::string own;
  try {
    map_and_register();
    own = to_hex(runtime.buffers().describe(handle_));
  } catch (const Error& error) {
    own = std::string(failure_mark) + error.message();
  }
  // All PEs learn of the first that failed, and none waits for it.
  const std::vector<std::string> texts = runtime.gather_text(own);
  for (std::size_t pe = 0; pe < texts.size(); ++pe) {
    if (!starts_with(texts[pe], failure_mark)) {
      descriptors_.push_back(from_hex(texts[pe], pe));
      continue;
    }
    if (!starts_with(own, failure_mark))
      release();
    throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "register memory",
                texts[pe].substr(failure_mark.size()),
                "free memory on the host of that PE, or pass a smaller size");
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
    runtime_.buffers().close(descriptor); // or its memory would stay in use
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
