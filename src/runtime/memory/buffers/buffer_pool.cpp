#include "src/runtime/memory/buffers/buffer_pool.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/log.h"

namespace shmemctl {

namespace {

Error bad_buffer(const BufferExtent& buffer, const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, text_of(buffer.address, buffer.size_bytes).text, "register", problem,
          fix};
}

Error stale(const BufferHandle& handle) {
  return {ExitCode::usage,
          fmt::format("buffer {} (registration {})", handle.slot, handle.generation), "use",
          "it is not registered, or not any more",
          "use a handle or descriptor only while its buffer is registered"};
}

} // namespace

BufferPool::BufferPool(HeapBacking& backing, std::size_t max_buffers)
    : backing_(backing), max_buffers_(max_buffers) {}

BufferPool::~BufferPool() {
  const std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_)
    if (slot.state != State::free && slot.buffer.shareable)
      refcounts_.drop_use(slot.buffer.extent.pages);
  try {
    release_unused();
  } catch (const Error& error) {
    log(LogLevel::warning, "memory", "registered buffers stay shared memory: " + error.message());
  }
}

const BufferPool::Slot& BufferPool::checked(const BufferHandle& handle, State state) const {
  if (handle.slot >= slots_.size() || handle.generation == 0 ||
      slots_[handle.slot].buffer.handle != handle || slots_[handle.slot].state != state)
    throw stale(handle);
  return slots_[handle.slot];
}

std::uint32_t BufferPool::take_slot() {
  const auto free = std::find_if(slots_.begin(), slots_.end(),
                                 [](const Slot& slot) { return slot.state == State::free; });
  if (free != slots_.end())
    return static_cast<std::uint32_t>(free - slots_.begin());
  if (slots_.size() == max_buffers_)
    throw Error(ExitCode::unavailable, "registered buffers", "register one more",
                fmt::format("all {} slots are in use", max_buffers_),
                "unregister buffers that are no longer used, or register fewer, larger ones");
  slots_.emplace_back();
  return static_cast<std::uint32_t>(slots_.size() - 1);
}

/// Throws if pages that were shared for earlier buffers are no longer mapped there: if the program
/// has unmapped them and reused the address, it is other memory.
void BufferPool::require_present(const std::vector<MappedArea>& map, const PageSpan& pages) const {
  for (const SharedPiece& piece : refcounts_.pieces(pages)) {
    std::size_t present_bytes = 0;
    for (const MappedArea& part : still_mapped(map, piece))
      present_bytes += part.pages.size_bytes();
    if (present_bytes != piece.pages.size_bytes())
      throw Error(ExitCode::usage, text_of(piece.pages.begin, piece.pages.size_bytes()).text, "use",
                  "memory in it was freed while registered",
                  "unregister a buffer before freeing its memory");
  }
}

BufferHandle BufferPool::add(const void* address, std::size_t size_bytes, bool may_replace_pages) {
  const BufferExtent extent = extent_of(address, size_bytes);
  const std::lock_guard lock(mutex_);
  const std::vector<MappedArea> map = read_address_map();
  const std::vector<MappedArea> parts = mappings_of(map, extent.pages);
  if (!covers(parts, extent.pages))
    throw bad_buffer(extent, "part of it is not mapped", "register allocated memory");
  const auto all = [&](auto property) { return std::all_of(parts.begin(), parts.end(), property); };
  if (!all([](const MappedArea& part) { return part.readable; }))
    throw bad_buffer(extent, "part of it is not readable", "register readable memory");
  require_present(map, extent.pages);
  const std::uint32_t slot = take_slot();
  RegisteredBuffer buffer{{slot, next_generation_++}, extent, true, false, {}, nullptr};
  buffer.writable = all([](const MappedArea& part) { return part.writable; });
  share_missing(buffer, map, may_replace_pages);
  slots_[slot] = {State::open, buffer};
  return buffer.handle;
}

BufferHandle BufferPool::add_gpu(const void* address, std::size_t size_bytes,
                                 std::shared_ptr<const GpuShare> gpu) {
  const BufferExtent extent = extent_of(address, size_bytes);
  const std::lock_guard lock(mutex_);
  const std::uint32_t slot = take_slot();
  const std::string reason = gpu->reason;
  slots_[slot] = {State::open,
                  {{slot, next_generation_++}, extent, true, false, reason, std::move(gpu)}};
  return slots_[slot].buffer.handle;
}

void BufferPool::share_missing(RegisteredBuffer& buffer, const std::vector<MappedArea>& map,
                               bool may_replace_pages) {
  const SharingRequest request{buffer.extent, may_replace_pages};
  const std::vector<PageSpan> gaps = refcounts_.missing(buffer.extent.pages);
  for (const PageSpan& gap : gaps)
    if (const auto reason = why_not_shareable(map, gap, request)) {
      buffer.reason = *reason;
      return;
    }
  std::vector<SharedPiece> pieces;
  bool adopted = false;
  try {
    for (const PageSpan& gap : gaps)
      share(map, gap, request, backing_, pieces);
    buffer.shareable = true;
  } catch (const Error& error) {
    buffer.reason = error.subject() + ": " + error.system_message();
  }
  for (SharedPiece& piece : pieces) {
    adopted = adopted || piece.file->adopted;
    refcounts_.insert(std::move(piece));
  }
  if (!buffer.shareable)
    return release_unused();
  refcounts_.add_use(buffer.extent.pages);
  buffer.reason = adopted        ? "its pages became shared memory"
                  : gaps.empty() ? "its pages are those of other registered buffers"
                                 : "it is a shared mapping";
}

void BufferPool::withdraw(const BufferHandle& handle) {
  const std::lock_guard lock(mutex_);
  checked(handle, State::open);
  slots_[handle.slot].state = State::withdrawn;
}

void BufferPool::remove(const BufferHandle& handle) {
  const std::lock_guard lock(mutex_);
  const RegisteredBuffer buffer = checked(handle, State::withdrawn).buffer;
  slots_[handle.slot] = {};
  if (!buffer.shareable)
    return;
  refcounts_.drop_use(buffer.extent.pages);
  release_unused();
}

void BufferPool::release_unused() {
  const std::vector<SharedPiece> unused = refcounts_.take_unused();
  if (unused.empty())
    return;
  const std::vector<MappedArea> map = read_address_map();
  for (const SharedPiece& piece : unused)
    if (const std::size_t gone_bytes = unshare(map, piece); gone_bytes > 0)
      log(LogLevel::warning, "memory",
          fmt::format("{} bytes at {:#x} were unmapped while they were registered: unregister a "
                      "buffer before its memory is freed",
                      gone_bytes, piece.pages.begin));
}

RegisteredBuffer BufferPool::get(const BufferHandle& handle) const {
  const std::lock_guard lock(mutex_);
  const bool withdrawn =
      handle.slot < slots_.size() && slots_[handle.slot].state == State::withdrawn;
  return checked(handle, withdrawn ? State::withdrawn : State::open).buffer;
}

std::optional<BufferHandle> BufferPool::starting_at(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  std::optional<BufferHandle> youngest;
  for (const Slot& slot : slots_)
    if (slot.state == State::open && slot.buffer.extent.address == at &&
        (!youngest || slot.buffer.handle.generation > youngest->generation))
      youngest = slot.buffer.handle;
  return youngest;
}

std::vector<BufferHandle> BufferPool::handles() const {
  const std::lock_guard lock(mutex_);
  std::vector<BufferHandle> handles;
  for (const Slot& slot : slots_)
    if (slot.state == State::open)
      handles.push_back(slot.buffer.handle);
  return handles;
}

PeerToPeerHandle BufferPool::export_pages(const BufferHandle& handle) const {
  const std::lock_guard lock(mutex_);
  const RegisteredBuffer& buffer = checked(handle, State::open).buffer;
  if (!buffer.shareable)
    throw Error(ExitCode::unavailable,
                text_of(buffer.extent.address, buffer.extent.size_bytes).text, "share",
                buffer.reason, "copy through the symmetric heap instead");
  require_present(read_address_map(), buffer.extent.pages);
  return {buffer.extent.page_gap_bytes(), refcounts_.pieces(buffer.extent.pages)};
}

} // namespace shmemctl
