// Memory of the kinds that programs register, and its contents.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

#include "src/runtime/memory/buffers/address_map.h"

namespace shmemctl::test {

/// Unmapped at the end.
class Pages {
public:
  explicit Pages(std::size_t count, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1,
                 int protection = PROT_READ | PROT_WRITE)
      : size_bytes_(count * page_bytes()) {
    void* mapped = ::mmap(nullptr, size_bytes_, protection, flags, file, 0);
    if (mapped == MAP_FAILED)
      throw std::runtime_error("mmap of a test's pages");
    base_ = static_cast<std::byte*>(mapped);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { unmap(); }
  void unmap() {
    if (std::byte* const base = std::exchange(base_, nullptr)) {
      ::munmap(base, hole_.value_or(size_bytes_));
      if (hole_ && *hole_ + page_bytes() < size_bytes_)
        ::munmap(base + *hole_ + page_bytes(), size_bytes_ - *hole_ - page_bytes());
    }
  }
  /// Unmaps the page after the first. What is mapped there later does not belong to this object.
  void make_hole(std::size_t page) {
    hole_ = page * page_bytes();
    ::munmap(base_ + *hole_, page_bytes());
  }
  std::byte* base() const { return base_; }
  std::size_t size_bytes() const { return size_bytes_; }

private:
  std::byte* base_ = nullptr;
  std::size_t size_bytes_;
  std::optional<std::size_t> hole_; ///< in bytes
};

inline std::byte pattern(std::size_t at, unsigned seed) {
  return static_cast<std::byte>((at * 2654435761u + seed * 40503u) >> 7);
}
inline void fill(std::byte* memory, std::size_t size_bytes, unsigned seed) {
  for (std::size_t at = 0; at < size_bytes; ++at)
    memory[at] = pattern(at, seed);
}
inline std::vector<std::byte> patterned(std::size_t size_bytes, unsigned seed) {
  std::vector<std::byte> bytes(size_bytes);
  fill(bytes.data(), size_bytes, seed);
  return bytes;
}
/// The first byte that is not of the pattern; `size_bytes` if all are.
inline std::size_t first_wrong(const std::byte* memory, std::size_t size_bytes, unsigned seed) {
  for (std::size_t at = 0; at < size_bytes; ++at)
    if (memory[at] != pattern(at, seed))
      return at;
  return size_bytes;
}

} // namespace shmemctl::test
