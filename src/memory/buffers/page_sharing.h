// Makes the pages of a buffer exportable, and takes that back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/memory/backing.h"
#include "src/memory/buffers/page_ledger.h"

namespace shmemctl {

struct SharingRequest {
  BufferExtent buffer;
  /// False if somebody (a device, another library) relies on the physical pages.
  bool may_replace_pages = true;
};

/// Why these pages cannot be shared, or nothing. `parts` are the mappings of the process.
std::optional<std::string> why_not_shareable(const std::vector<MappedArea>& parts,
                                             const PageSpan& pages, const SharingRequest& request);

/// Shares `pages`: takes the file of what is a shared mapping already, and replaces the pages of
/// private memory in place by those of a new file with the same content. Throws Error
/// (unavailable); what it appended to `pieces` until then is shared.
void share(const std::vector<MappedArea>& map, const PageSpan& pages, const SharingRequest& request,
           HeapBacking& backing, std::vector<SharedPiece>& pieces);

/// The parts of a piece that are still mapped from its file at its place.
std::vector<MappedArea> still_mapped(const std::vector<MappedArea>& map, const SharedPiece& piece);

/// Makes the pages of an adopted piece private again, where they are still mapped, and gives the
/// file's memory back. Returns the bytes that were not there any more.
std::size_t unshare(const std::vector<MappedArea>& map, const SharedPiece& piece) noexcept;

} // namespace shmemctl
