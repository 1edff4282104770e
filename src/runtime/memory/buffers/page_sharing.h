// Makes the pages of a buffer exportable, and undoes that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/runtime/memory/backing.h"
#include "src/runtime/memory/buffers/address_map.h"
#include "src/runtime/memory/buffers/page_refcounts.h"

namespace shmemctl {

/// Whether the kernel lets this process block all writers to some pages (userfaultfd of Linux 5.19,
/// which blocks threads and the kernel on their behalf; containers usually forbid it). If so, pages
/// can be replaced while threads write to them; otherwise writes meanwhile can be lost.
bool writers_can_be_held();

/// Whether the pages contain the calling thread's stack, its errno, or the parts of its control
/// block and rseq area that the kernel writes. Such pages are never replaced.
bool holds_own_stack(const PageSpan& pages);

/// Copies the contents of the pages into the file at `offset_bytes`, and maps the file there in
/// their place. Returns 0, or the errno if nothing has changed.
/// @param hold block writers meanwhile; ENOTSUP if these pages do not allow it
int share_pages(const PageSpan& pages, int file, std::uint64_t offset_bytes, bool hold) noexcept;

/// The opposite: replaces the pages by private memory with the file's contents.
/// @param protection as in mmap()
int make_pages_private(const PageSpan& pages, int file, std::uint64_t offset_bytes, int protection,
                       bool hold) noexcept;

struct SharingRequest {
  BufferExtent buffer;
  /// False if a device or another library relies on the physical pages.
  bool may_replace_pages = true;
};

/// Why these pages cannot be shared; nothing if they can. `map` has the whole mappings of the
/// process, not clipped to the pages.
std::optional<std::string> why_not_shareable(const std::vector<MappedArea>& map,
                                             const PageSpan& pages, const SharingRequest& request);

/// Shares `pages`: uses the file of a mapping that is already shared, and replaces private memory
/// in place by pages of a new file with the same contents. Appends the resulting pieces to
/// `pieces`. Throws Error (unavailable); the pieces that were appended before are then shared.
void share(const std::vector<MappedArea>& map, const PageSpan& pages, const SharingRequest& request,
           HeapBacking& backing, std::vector<SharedPiece>& pieces);

/// The parts of a piece that are still mapped from its file at its address.
std::vector<MappedArea> still_mapped(const std::vector<MappedArea>& map, const SharedPiece& piece);

/// Makes those pages of an adopted piece that are still mapped private again; if that was all of
/// them, also frees the file's memory. Returns the number of bytes that were no longer mapped.
std::size_t unshare(const std::vector<MappedArea>& map, const SharedPiece& piece) noexcept;

} // namespace shmemctl
