// A file whose pages are mapped in this program, and how to get hold of it again.
#pragma once

#include <memory>

#include "src/base/file_descriptor.h"
#include "src/memory/buffers/address_map.h"

namespace shmemctl {

/// What pages come from, while any buffer needs them.
struct PageFile {
  FileDescriptor descriptor;
  dev_t device = 0;
  ino_t inode = 0;
  bool adopted = false; ///< made by us for memory that was private; else the program's own
};
/// Throws Error (unavailable).
std::shared_ptr<const PageFile> make_page_file(FileDescriptor descriptor, bool adopted);

/// Opens the file of a shared mapping of the program (memfd, /dev/shm): by a descriptor that the
/// program has open, by its name, or through /proc/self/map_files where that is allowed. For
/// writing too if the mapping is writable. Nothing if none of these gives the same file.
FileDescriptor open_file_of(const MappedArea& mapping);

} // namespace shmemctl
