#include "src/runtime/memory/symmetric_region.h"

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/round_up.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

std::size_t address_space_bytes(std::size_t slots, std::size_t stride_bytes) {
  if (stride_bytes == 0 || slots > SIZE_MAX / stride_bytes)
    throw Error(ExitCode::usage,
                fmt::format("{} times {} of address space", slots, format_size_bytes(stride_bytes)),
                "reserve", "larger than any address space", "lower SHMEMCTL_SYMMETRIC_SIZE");
  return slots * stride_bytes;
}

} // namespace

struct SymmetricRegion::Impl {
  std::string name;
  LocalPeers& peers;
  HeapBacking& backing;
  std::size_t stride_bytes;
  std::size_t slots, my_slot;
  std::unique_ptr<AddressRange> range;
  std::size_t committed_bytes = 0;

  Impl(std::string its_name, std::size_t min_stride_bytes, LocalPeers& its_peers,
       HeapBacking& its_backing)
      : name(std::move(its_name)), peers(its_peers), backing(its_backing),
        stride_bytes(round_up(min_stride_bytes, backing.granularity_bytes())),
        slots(static_cast<std::size_t>(peers.slots())),
        my_slot(static_cast<std::size_t>(peers.my_slot())),
        range(backing.reserve(address_space_bytes(slots, stride_bytes))) {}

  std::byte* slot_base(std::size_t slot) const { return range->base() + slot * stride_bytes; }
  void map_step(std::size_t step_bytes, const Deadline& deadline);
  void unmap_step(std::size_t step_bytes) noexcept {
    for (std::size_t slot = 0; slot < slots; ++slot)
      range->clear(slot_base(slot) + committed_bytes, step_bytes);
  }
};

/// Maps one step of every slot. The descriptors are closed at the end; the mappings keep the
/// memory.
void SymmetricRegion::Impl::map_step(std::size_t step_bytes, const Deadline& deadline) {
  const std::unique_ptr<Chunk> chunk = backing.create(step_bytes);
  chunk->map(slot_base(my_slot) + committed_bytes);
  std::vector<FileDescriptor> theirs = peers.exchange(chunk->descriptor(), deadline);
  for (std::size_t slot = 0; slot < slots; ++slot)
    if (slot != my_slot)
      backing.import(std::move(theirs[slot]), step_bytes)->map(slot_base(slot) + committed_bytes);
  // A barrier: no PE treats the step as committed before all PEs have mapped it.
  peers.exchange(-1, deadline);
}

SymmetricRegion::SymmetricRegion(std::string name, std::size_t stride_bytes, LocalPeers& peers,
                                 HeapBacking& backing)
    : impl_(std::make_unique<Impl>(std::move(name), stride_bytes, peers, backing)) {}

SymmetricRegion::~SymmetricRegion() = default;

void SymmetricRegion::grow(std::size_t more_bytes, const Deadline& deadline) {
  Impl& own = *impl_;
  const std::size_t room_bytes = own.stride_bytes - own.committed_bytes;
  if (more_bytes > room_bytes)
    throw Error(ExitCode::unavailable, "region '" + own.name + "'", "grow",
                fmt::format("{} of its {} are in use, and {} more do not fit",
                            format_size_bytes(own.committed_bytes),
                            format_size_bytes(own.stride_bytes), format_size_bytes(more_bytes)),
                "raise SHMEMCTL_SYMMETRIC_SIZE");
  if (more_bytes == 0)
    return;
  const std::size_t step_bytes = round_up(more_bytes, own.backing.granularity_bytes());
  try {
    own.map_step(step_bytes, deadline);
  } catch (const Error& error) {
    own.unmap_step(step_bytes);
    throw error.with_subject(error.subject() + " for the region '" + own.name + "'");
  } catch (...) {
    own.unmap_step(step_bytes);
    throw;
  }
  own.committed_bytes += step_bytes;
}

std::byte* SymmetricRegion::base() const {
  return impl_->slot_base(impl_->my_slot);
}

std::byte* SymmetricRegion::slot_base(int slot) const {
  return impl_->slot_base(static_cast<std::size_t>(slot));
}

std::size_t SymmetricRegion::size_bytes() const {
  return impl_->committed_bytes;
}

std::size_t SymmetricRegion::stride_bytes() const {
  return impl_->stride_bytes;
}

bool HeapMemory::contains(const void* address) const {
  // Compared as numbers: pointers into different objects have no order.
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto begin = reinterpret_cast<std::uintptr_t>(base());
  return at >= begin && at - begin < size_bytes();
}

} // namespace shmemctl
