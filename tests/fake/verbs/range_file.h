// What the fake CUDA driver puts into a file in a dma-buf's place: which memory it stands for.
#pragma once

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace fake_verbs {

struct Range {
  std::uint64_t magic = 0x66616b6564627566;
  std::uint64_t address = 0, size_bytes = 0;
};

/// -1 if there is none.
inline int make_range_file(const Range& range) {
  const int file = ::memfd_create("fake-dma-buf", MFD_CLOEXEC);
  if (file >= 0 && ::write(file, &range, sizeof range) != static_cast<ssize_t>(sizeof range)) {
    ::close(file);
    return -1;
  }
  return file;
}
/// Nothing of it for another file.
inline Range read_range(int file) {
  Range range;
  const bool whole = ::pread(file, &range, sizeof range, 0) == static_cast<ssize_t>(sizeof range) &&
                     range.magic == Range{}.magic;
  return whole ? range : Range{};
}

} // namespace fake_verbs
