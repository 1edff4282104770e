// Page ranges, and the memory mappings of this process (/proc/self/maps).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace shmemctl {

/// Addresses from `begin` up to, but not including, `end`; both are multiples of the page size.
struct PageSpan {
  std::uintptr_t begin = 0, end = 0;
  std::size_t size_bytes() const { return end - begin; }
  bool operator==(const PageSpan&) const = default;
};

std::size_t page_bytes();

/// A registered buffer and its pages. A byte's position in the pages is the page gap, which belongs
/// to the registration, plus the user offset of a call; only position() adds the two.
struct BufferExtent {
  std::uintptr_t address = 0;
  std::size_t size_bytes = 0;
  PageSpan pages; ///< all pages that contain a byte of the buffer
  /// Distance from the start of the first page to the start of the buffer.
  std::size_t page_gap_bytes() const { return address - pages.begin; }
  std::uintptr_t end() const { return address + size_bytes; }
};
/// Throws Error (usage) for a null address, a size of 0, or a range beyond the address space.
BufferExtent extent_of(const void* address, std::size_t size_bytes);

/// The position of byte `user_offset_bytes` of a buffer, relative to the start of its pages.
inline std::size_t position(std::size_t page_gap_bytes, std::uint64_t user_offset_bytes) {
  return page_gap_bytes + static_cast<std::size_t>(user_offset_bytes);
}
/// Throws Error (usage) unless the `bytes` bytes from `offset_bytes` on are inside a buffer of
/// `buffer_bytes`.
void require_inside(std::uint64_t offset_bytes, std::size_t bytes, std::uint64_t buffer_bytes);

/// "the buffer of 4096 bytes at 0x7f00...", for messages.
struct BufferText {
  char text[80];
};
BufferText text_of(std::uintptr_t address, std::size_t size_bytes);

struct MappedArea {
  PageSpan pages;
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t offset_bytes = 0; ///< offset of `pages.begin` in the file
  dev_t device = 0;
  ino_t inode = 0; ///< 0: not a mapping of a file
  std::string name;

  bool is_of_file(dev_t its_device, ino_t its_inode) const {
    return inode != 0 && inode == its_inode && device == its_device;
  }
};

/// The lines of /proc/PID/maps; malformed ones are skipped. Accepts any bytes.
std::vector<MappedArea> parse_address_map(std::string_view text);
/// The mappings of this process, ascending. Throws Error (unavailable).
std::vector<MappedArea> read_address_map();

/// The mappings that overlap `pages`, clipped to it.
std::vector<MappedArea> mappings_of(const std::vector<MappedArea>& all, const PageSpan& pages);
/// Whether the mappings cover `pages` completely.
bool covers(const std::vector<MappedArea>& parts, const PageSpan& pages);

} // namespace shmemctl
