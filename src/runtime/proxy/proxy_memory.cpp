#include "src/runtime/proxy/proxy_memory.h"

#include <bit>
#include <new>

#include "src/base/error.h"

namespace shmemctl {

namespace {

constexpr std::size_t largest_capacity = std::size_t{1} << 24;

void require_legal(const ProxyOptions& options) {
  if (!std::has_single_bit(options.capacity) || options.capacity < 2 ||
      options.capacity > largest_capacity)
    throw Error(ExitCode::usage, "proxy FIFO", "",
                "invalid capacity of " + std::to_string(options.capacity) +
                    " slots: it must be a power of two from 2 to 2^24",
                "choose such a capacity");
  const ProxyDrainLimits& limits = options.limits;
  if (limits.batch < 1 || limits.batch > ProxyTraits::largest_batch || limits.publish_every < 1 ||
      limits.publish_every > options.capacity)
    throw Error(ExitCode::usage, "proxy batch", "",
                "invalid size: a batch has 1 to 32 requests, and credits return every 1 to "
                "capacity requests",
                "choose a number in that range");
}

} // namespace

ProxyMemory::ProxyMemory(const ProxyOptions& options) {
  require_legal(options);
  const auto capacity_log2 = static_cast<unsigned>(std::countr_zero(options.capacity));
  constexpr std::size_t page_bytes = 4096;
  const std::size_t size_bytes =
      (proxy_bytes(capacity_log2, options.n_results) + page_bytes - 1) / page_bytes * page_bytes;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page_bytes, size_bytes)));
  if (!memory_)
    throw Error(ExitCode::unavailable, "proxy FIFO",
                "allocate " + std::to_string(size_bytes) + " bytes", "out of memory",
                "free host memory");
  header_ = new (memory_.get()) ProxyHeader{};
  header_->magic = ProxyHeader::magic_value;
  header_->version = ProxyHeader::layout_version;
  header_->size_bytes = size_bytes;
  header_->capacity_log2 = capacity_log2;
  header_->n_results = options.n_results;
  header_->slots_offset_bytes = sizeof(ProxyHeader);
  header_->results_offset_bytes = sizeof(ProxyHeader) + options.capacity * sizeof(ProxySlot);
  using Sequence = ProxyTraits::Sequence;
  const std::uint64_t first = options.first_sequence & Sequence::mask;
  header_->first_sequence = first;
  header_->issued = first << 1;
  header_->completed = header_->quieted = first;
  auto* slots = new (memory_.get() + header_->slots_offset_bytes) ProxySlot[options.capacity]();
  for (std::size_t slot = 0; slot < options.capacity; ++slot)
    for (std::uint64_t& word : slots[slot].words)
      word = Sequence::tag_before(first, slot, capacity_log2);
  auto* results =
      new (memory_.get() + header_->results_offset_bytes) ProxyResult[options.n_results]();
  view_.slots = slots[0].words;
  view_.issued = &header_->issued;
  view_.completed = &header_->completed;
  view_.quieted = &header_->quieted;
  view_.results = reinterpret_cast<std::uint64_t*>(results);
  view_.capacity_log2 = capacity_log2;
  view_.n_results = options.n_results;
  for (std::uint32_t number = options.n_results; number-- > 0;)
    free_results_.push_back({number, 0});
}

ProxyMemory::Result ProxyMemory::claim_result() {
  const std::lock_guard lock(mutex_);
  if (free_results_.empty())
    throw Error(ExitCode::unavailable, "proxy", "wait for a result",
                "all " + std::to_string(view_.n_results) + " result slots are in use",
                "use fewer producers at once");
  const Result result = free_results_.back();
  free_results_.pop_back();
  return result;
}

void ProxyMemory::release_result(const Result& result) noexcept {
  const std::lock_guard lock(mutex_);
  free_results_.push_back(result); // its capacity was reached when all were free
}

std::string ProxyMemory::culprit() const {
  using Sequence = ProxyTraits::Sequence;
  const std::uint64_t completed = HostAtomics::load_acquire(view_.completed);
  const std::uint64_t issued = HostAtomics::load_relaxed(view_.issued) >> 1;
  const std::uint64_t open = Sequence::distance(completed, issued);
  const std::uint64_t* slot =
      view_.slots + Sequence::slot(completed, view_.capacity_log2) * ProxyTraits::words;
  const std::uint64_t tag = Sequence::tag(completed, view_.capacity_log2);
  bool filled = true;
  for (unsigned i = 0; i < ProxyTraits::words; ++i)
    filled = filled && (HostAtomics::load_relaxed(slot + i) & low_bits(proxy_tag_shift)) == tag;
  const std::string number = std::to_string(completed);
  if (open > 0 && !filled)
    return "request " + number + " was reserved and never filled: its producer has died or hangs";
  return "the proxy thread has not taken request " + number + ", and " + std::to_string(open) +
         " wait: it has died or gets no processor";
}

} // namespace shmemctl
