#include "src/runtime/memory/symmetric_heap.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/round_up.h"

namespace shmemctl {

namespace {

/// The value to agree on for a null address.
constexpr std::uint64_t null_address = ~std::uint64_t{0};
/// Maximum number of remembered freed offsets, which only improve a message.
constexpr std::size_t max_remembered = 65'536;

} // namespace

SymmetricHeap::SymmetricHeap(const Config& config, HeapMemory& region, Agreement agreement)
    : config_(config), region_(region), agreement_(std::move(agreement)),
      allocator_(std::min(region.size_bytes(), config.limit_bytes)) {}

void* SymmetricHeap::allocate(std::size_t size_bytes, std::size_t alignment_bytes) {
  agree("shmem_malloc (size)", size_bytes);
  agree("shmem_malloc (alignment)", alignment_bytes);
  std::optional<std::size_t> offset = allocator_.allocate(size_bytes, alignment_bytes);
  if (!offset && grow_for(size_bytes, alignment_bytes))
    offset = allocator_.allocate(size_bytes, alignment_bytes);
  if (!offset)
    return nullptr;
  freed_.erase(*offset);
  return region_.base() + *offset;
}

/// Grows the heap so that a block of that size fits at the end; false if the limit does not allow
/// it.
bool SymmetricHeap::grow_for(std::size_t size_bytes, std::size_t alignment_bytes) {
  const std::uint64_t limit = std::min(config_.limit_bytes, region_.stride_bytes());
  const std::uint64_t alignment = std::max(alignment_bytes, Allocator::minimum_alignment_bytes);
  if (size_bytes == 0 || size_bytes > limit || alignment > limit ||
      (alignment & (alignment - 1)) != 0)
    return false;
  const std::uint64_t size = allocator_.size_bytes();
  const std::uint64_t usable = size - size % Allocator::minimum_alignment_bytes;
  const std::uint64_t end = round_up(usable - allocator_.free_tail_bytes(), alignment) +
                            round_up(size_bytes, Allocator::minimum_alignment_bytes);
  if (end <= size || end > limit)
    return false;
  const std::uint64_t chunk = std::max<std::uint64_t>(config_.chunk_bytes, 1);
  const std::uint64_t wanted = std::min(size + round_up(end - size, chunk), limit);
  if (wanted > region_.size_bytes())
    region_.grow(wanted - region_.size_bytes(),
                 Deadline::after(std::chrono::duration<double>(config_.timeout_s)));
  allocator_.grow(wanted - size);
  return true;
}

void SymmetricHeap::free(void* address) {
  if (!address) {
    agree("shmem_free (offset)", null_address);
    return;
  }
  const bool inside = region_.contains(address);
  const auto offset =
      inside ? static_cast<std::size_t>(static_cast<std::byte*>(address) - region_.base())
             : std::size_t{0};
  if (config_.checked && inside && allocator_.block_bytes(offset)) {
    // The PEs agree before anything changes.
    agree("shmem_free (offset)", offset);
    if (freed_.size() >= max_remembered)
      freed_.clear();
    freed_.insert(offset);
  }
  if (!inside) {
    report(address, "it is not in the symmetric heap");
    return;
  }
  switch (allocator_.free(offset)) {
  case Allocator::FreeResult::freed:
    return;
  case Allocator::FreeResult::inside_a_block:
    report(address, "it is inside an allocation, not at its start");
    return;
  case Allocator::FreeResult::not_allocated:
    report(address, freed_.count(offset) != 0
                        ? "it was already freed"
                        : "no allocation starts there, or it was already freed");
    return;
  }
}

void SymmetricHeap::agree(const char* call, std::uint64_t value) const {
  if (config_.checked && agreement_)
    agreement_(call, value);
}

void SymmetricHeap::report(const void* address, const std::string& problem) const {
  Where where;
  if (config_.pe >= 0)
    where.pe = config_.pe;
  const Error error(
      ExitCode::finding, fmt::format("shmem_free({})", address), "", problem,
      "free each address from shmem_malloc, shmem_calloc or shmem_align once, on all PEs", where);
  if (config_.checked)
    throw error;
  log(LogLevel::warning, "memory", error.message());
}

} // namespace shmemctl
