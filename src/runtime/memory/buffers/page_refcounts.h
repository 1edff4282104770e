// Which pages are shared, from which file, and how many buffers need each.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/runtime/memory/buffers/address_map.h"

namespace shmemctl {

/// The file of shared pages, kept open while any buffer needs them.
struct PageFile {
  FileDescriptor descriptor;
  dev_t device = 0;
  ino_t inode = 0;
  bool adopted = false; ///< true if registration replaced private memory by this mapping; false if
                        ///< the mapping is the program's own
};
/// Throws Error (unavailable).
std::shared_ptr<const PageFile> make_page_file(FileDescriptor descriptor, bool adopted);

/// Opens the file of a shared mapping of the program (memfd, /dev/shm): through
/// /proc/self/map_files if that is allowed, else by a descriptor that the program has open, or by
/// its name; for writing too if the mapping is writable. Nothing if none of these is the same file.
FileDescriptor open_file_of(const MappedArea& mapping);

/// Pages that are contiguous in the address space and in one file.
struct SharedPiece {
  PageSpan pages;
  std::shared_ptr<const PageFile> file;
  std::uint64_t offset_bytes = 0; ///< offset of `pages.begin` in the file
  unsigned uses = 0;
};

/// Intervals of whole pages, each with its number of users. Buffers may overlap, contain each other
/// and share a page. Pure arithmetic: maps and unmaps nothing. Not thread safe.
class PageRefcounts {
public:
  /// The parts of `pages` that are not in any piece, ascending.
  std::vector<PageSpan> missing(const PageSpan& pages) const;
  /// Adds a piece, which must not overlap others; it has no user yet.
  void insert(SharedPiece piece);
  /// Adds one user of `pages`, all of which must be in pieces.
  void add_use(const PageSpan& pages);
  /// Removes one user of `pages`, each of which must have one.
  void drop_use(const PageSpan& pages);
  /// Removes and returns the pieces without users.
  std::vector<SharedPiece> take_unused();
  /// The parts of `pages` that are in pieces, ascending, clipped to `pages`, and merged if they are
  /// contiguous in a file.
  std::vector<SharedPiece> pieces(const PageSpan& pages) const;

  const std::map<std::uintptr_t, SharedPiece>& all() const { return pieces_; }

private:
  /// Splits the piece that contains `at`, if any, so that a piece begins there.
  void split(std::uintptr_t at);

  std::map<std::uintptr_t, SharedPiece> pieces_; ///< by their first address
};

} // namespace shmemctl
