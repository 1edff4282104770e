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
/// for threads and for the kernel on their behalf; containers usually forbid it). Then pages can be
/// replaced while threads write to them; otherwise writes during the replacement are lost.
bool writers_can_be_held();

/// Whether the pages hold the stack or the thread-local variables of the calling thread, or the
/// stack of the main thread: those are never replaced.
bool holds_own_stack(const PageSpan& pages);

/// Maps `pages.size_bytes()` of the file, from `offset_bytes`, over the pages, after what they hold
/// has been copied into it. Returns 0, or the error's number, and then nothing has changed.
/// @param hold hold up writers meanwhile; ENOTSUP if these pages do not allow it
int share_pages(const PageSpan& pages, int file, std::uint64_t offset_bytes, bool hold) noexcept;

/// The opposite: memory of this process alone, with what the file holds there.
/// @param protection as of mmap()
int make_pages_private(const PageSpan& pages, int file, std::uint64_t offset_bytes, int protection,
                       bool hold) noexcept;

struct SharingRequest {
  BufferExtent buffer;
  /// False if a device or another library relies on the physical pages.
  bool may_replace_pages = true;
};

/// Why these pages cannot be shared, or nothing. `parts` are the mappings of the process.
std::optional<std::string> why_not_shareable(const std::vector<MappedArea>& parts,
                                             const PageSpan& pages, const SharingRequest& request);

/// Shares `pages`: uses the file of a mapping that is shared already, and replaces the pages of
/// private memory in place by those of a new file with the same content. Throws Error
/// (unavailable); what it has appended to `pieces` by then is shared.
void share(const std::vector<MappedArea>& map, const PageSpan& pages, const SharingRequest& request,
           HeapBacking& backing, std::vector<SharedPiece>& pieces);

/// The parts of a piece that are still mapped from its file at its address.
std::vector<MappedArea> still_mapped(const std::vector<MappedArea>& map, const SharedPiece& piece);

/// Makes the pages of an adopted piece private again, where they are still mapped, and gives the
/// file's memory back. Returns the bytes that were not there any more.
std::size_t unshare(const std::vector<MappedArea>& map, const SharedPiece& piece) noexcept;

} // namespace shmemctl
