#include "src/memory/buffers/page_sharing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/memory/buffers/page_swap.h"

namespace shmemctl {

namespace {

/// Whether nothing but the buffer lies in these pages.
bool alone_in(const PageSpan& pages, const BufferExtent& buffer) {
  return pages.begin >= buffer.address && pages.end <= buffer.end();
}

std::optional<std::string> why_not_replaceable(const MappedArea& part,
                                               const SharingRequest& request) {
  if (!request.may_replace_pages)
    return "its pages must stay (asked for at registration)";
  if (!part.writable)
    return "read-only memory is not replaced";
  if (part.executable)
    return "executable memory is not replaced";
  if (part.name == "[stack]" || holds_own_stack(part.pages))
    return "a stack is not replaced";
  if (!writers_can_be_held() && !alone_in(part.pages, request.buffer))
    return "it shares a page with other data, to which threads may write at this moment "
           "(userfaultfd is not permitted here): align it to whole pages";
  return std::nullopt;
}

void adopt(const PageSpan& pages, const BufferExtent& buffer, HeapBacking& backing,
           std::vector<SharedPiece>& pieces) {
  const std::unique_ptr<Chunk> chunk = backing.create_of_small_pages(pages.size_bytes());
  FileDescriptor copy(::fcntl(chunk->descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!copy)
    throw system_error("memory of a registered buffer", "duplicate its descriptor", errno,
                       "raise the limit of open files: ulimit -n");
  auto file = make_page_file(std::move(copy), true);
  pieces.reserve(pieces.size() + 1); // nothing may fail once the pages are replaced
  const bool hold = writers_can_be_held();
  int error = share_pages(pages, file->descriptor.get(), 0, hold);
  // A private mapping of a file allows no holding.
  if (error == ENOTSUP && hold && alone_in(pages, buffer))
    error = share_pages(pages, file->descriptor.get(), 0, false);
  if (error != 0)
    throw system_error("pages of a registered buffer", "replace", error,
                       "register memory from mmap or aligned_alloc, in whole pages");
  pieces.push_back({pages, std::move(file), 0, 0});
}

} // namespace

std::optional<std::string> why_not_shareable(const std::vector<MappedArea>& map,
                                             const PageSpan& pages, const SharingRequest& request) {
  for (const MappedArea& whole : map) {
    const std::vector<MappedArea> part = mappings_of({whole}, pages);
    if (part.empty())
      continue;
    if (whole.shared) {
      if (!open_file_of(whole))
        return "the file of this shared mapping cannot be opened again: keep its descriptor open";
    } else if (auto reason = why_not_replaceable(part[0], request)) {
      return reason;
    }
  }
  return std::nullopt;
}

void share(const std::vector<MappedArea>& map, const PageSpan& pages, const SharingRequest& request,
           HeapBacking& backing, std::vector<SharedPiece>& pieces) {
  if (const auto reason = why_not_shareable(map, pages, request))
    throw Error(ExitCode::unavailable, "pages of a registered buffer", "share", *reason,
                "copy through the symmetric heap instead");
  PageSpan run{pages.begin, pages.begin}; // private memory that follows each other
  for (const MappedArea& whole : map) {
    for (const MappedArea& part : mappings_of({whole}, pages)) {
      if (!part.shared) {
        run.end = part.pages.end;
        continue;
      }
      if (run.size_bytes() > 0)
        adopt(run, request.buffer, backing, pieces);
      run = {part.pages.end, part.pages.end};
      pieces.push_back(
          {part.pages, make_page_file(open_file_of(whole), false), part.offset_bytes, 0});
    }
  }
  if (run.size_bytes() > 0)
    adopt(run, request.buffer, backing, pieces);
}

std::vector<MappedArea> still_mapped(const std::vector<MappedArea>& map, const SharedPiece& piece) {
  std::vector<MappedArea> parts = mappings_of(map, piece.pages);
  std::erase_if(parts, [&](const MappedArea& part) {
    return !part.shared || !part.is_of_file(piece.file->device, piece.file->inode) ||
           part.offset_bytes != piece.offset_bytes + (part.pages.begin - piece.pages.begin);
  });
  return parts;
}

std::size_t unshare(const std::vector<MappedArea>& map, const SharedPiece& piece) noexcept {
  std::size_t gone_bytes = piece.pages.size_bytes();
  bool all_private = piece.file->adopted;
  for (const MappedArea& part : still_mapped(map, piece)) {
    gone_bytes -= part.pages.size_bytes();
    if (!piece.file->adopted)
      continue;
    const int protection = (part.readable ? PROT_READ : 0) | (part.writable ? PROT_WRITE : 0);
    // Memory that nobody may read cannot be protected against writers, and has none.
    const bool hold = writers_can_be_held() && part.readable;
    const int error = make_pages_private(part.pages, piece.file->descriptor.get(),
                                         part.offset_bytes, protection, hold);
    if (error == 0)
      continue;
    all_private = false;
    log(LogLevel::warning, "memory",
        fmt::format("{} bytes of an unregistered buffer stay shared memory: {}",
                    part.pages.size_bytes(), std::strerror(error)));
  }
  // What the program has moved elsewhere may still be its memory.
  if (all_private && gone_bytes == 0)
    ::fallocate(piece.file->descriptor.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(piece.offset_bytes),
                static_cast<off_t>(piece.pages.size_bytes()));
  return gone_bytes;
}

} // namespace shmemctl
