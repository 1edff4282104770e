// Replaces pages of the running program by others with the same content, in place.
#pragma once

#include <cstdint>

#include "src/memory/buffers/page_span.h"

namespace shmemctl {

/// Whether the kernel lets this process hold up everybody who writes to some pages (userfaultfd of
/// Linux 5.19, for writes of threads and of the kernel on their behalf; a container usually
/// forbids it). Then pages can be replaced under threads that write to them; without it, what they
/// write in that moment is lost.
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

} // namespace shmemctl
