// What is mapped where in this process, as the kernel lists it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "src/memory/buffers/page_span.h"

namespace shmemctl {

struct MappedArea {
  PageSpan pages;
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t offset_bytes = 0; ///< of `pages.begin` in the file
  dev_t device = 0;
  ino_t inode = 0; ///< 0: no file
  std::string name;

  bool is_of_file(dev_t its_device, ino_t its_inode) const {
    return inode != 0 && inode == its_inode && device == its_device;
  }
};

/// The lines of /proc/PID/maps; those that are none are left out. Survives any bytes.
std::vector<MappedArea> parse_address_map(std::string_view text);
/// Of this process, ascending. Throws Error (unavailable).
std::vector<MappedArea> read_address_map();

/// Those that overlap `pages`, cut at its ends.
std::vector<MappedArea> mappings_of(const std::vector<MappedArea>& all, const PageSpan& pages);
/// Whether they cover all of it.
bool covers(const std::vector<MappedArea>& parts, const PageSpan& pages);

} // namespace shmemctl
