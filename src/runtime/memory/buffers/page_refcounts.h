// Which pages are shared, from which file, and how many buffers need each.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/runtime/memory/buffers/address_map.h"

namespace shmemctl {

/// The file of shared pages, held while any buffer needs them.
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

/// Pages that are contiguous in the address space and in one file.
struct SharedPiece {
  PageSpan pages;
  std::shared_ptr<const PageFile> file;
  std::uint64_t offset_bytes = 0; ///< of `pages.begin` in the file
  unsigned uses = 0;
};

/// Intervals of whole pages, each with its count of users. Buffers may overlap, lie inside each
/// other and share a page. Pure arithmetic: maps and unmaps nothing. Not thread safe.
class PageRefcounts {
public:
  /// The parts of `pages` that it does not hold, ascending.
  std::vector<PageSpan> missing(const PageSpan& pages) const;
  /// Adds a piece that overlaps none that it holds; it has no user yet.
  void insert(SharedPiece piece);
  /// One more user of `pages`, which it must hold in whole.
  void add_use(const PageSpan& pages);
  /// One user less, of pages that have one.
  void drop_use(const PageSpan& pages);
  /// Removes and returns the pieces without a user.
  std::vector<SharedPiece> take_unused();
  /// The parts of `pages` that it holds, ascending, clipped to `pages` and merged where a file
  /// continues.
  std::vector<SharedPiece> pieces(const PageSpan& pages) const;

  const std::map<std::uintptr_t, SharedPiece>& all() const { return pieces_; }

private:
  /// Makes sure that no piece reaches over `at`.
  void split(std::uintptr_t at);

  std::map<std::uintptr_t, SharedPiece> pieces_; ///< by their first address
};

} // namespace shmemctl
