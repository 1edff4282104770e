#include "src/memory/buffers/page_span.h"

#include <cstdio>
#include <string>
#include <unistd.h>

#include "src/base/error.h"

namespace shmemctl {

std::size_t page_bytes() {
  static const auto size_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size_bytes;
}

BufferText text_of(std::uintptr_t address, std::size_t size_bytes) {
  BufferText out;
  std::snprintf(out.text, sizeof out.text, "the buffer of %zu bytes at %#zx", size_bytes,
                static_cast<std::size_t>(address));
  return out;
}

BufferExtent extent_of(const void* address, std::size_t size_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto refuse = [&](const char* why) {
    return Error(ExitCode::usage, text_of(begin, size_bytes).text, "register", why,
                 "register memory that the program owns, with its size in bytes");
  };
  if (!address)
    throw refuse("the address is NULL");
  if (size_bytes == 0)
    throw refuse("its size is 0");
  const std::size_t page = page_bytes();
  if (size_bytes > UINTPTR_MAX - page - begin)
    throw refuse("it ends beyond the address space");
  const std::uintptr_t end = begin + size_bytes;
  return {begin, size_bytes, {begin / page * page, (end + page - 1) / page * page}};
}

void require_inside(std::uint64_t offset_bytes, std::size_t bytes, std::uint64_t buffer_bytes) {
  if (offset_bytes > buffer_bytes || bytes > buffer_bytes - offset_bytes)
    throw Error(ExitCode::usage,
                "transfer of " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(offset_bytes),
                "", "out of bounds: the buffer has " + std::to_string(buffer_bytes) + " bytes",
                "transfer less, or register a larger buffer");
}

} // namespace shmemctl
