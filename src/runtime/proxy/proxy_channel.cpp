#include "src/runtime/proxy/proxy_channel.h"

#include <algorithm>
#include <bit>
#include <new>
#include <thread>

#include "src/base/deadline.h"
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
                "choose a power of two in that range");
  const ProxyDrainLimits& limits = options.limits;
  if (limits.batch < 1 || limits.batch > ProxyTraits::largest_batch || limits.publish_every < 1 ||
      limits.publish_every > options.capacity)
    throw Error(ExitCode::usage, "proxy batch", "",
                "invalid limits: a batch of " + std::to_string(limits.batch) +
                    " requests, and credits returned every " +
                    std::to_string(limits.publish_every) + " requests",
                "choose 1 to 32 requests, and 1 to " + std::to_string(options.capacity));
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
    throw Error(ExitCode::unavailable, "proxy", "get a result slot",
                "all " + std::to_string(view_.n_results) + " are in use",
                "communicate from fewer threads: each that has waited keeps a slot");
  const Result result = free_results_.back();
  free_results_.pop_back();
  return result;
}

void ProxyMemory::release_result(const Result& result) noexcept {
  const std::lock_guard lock(mutex_);
  // push_back() does not allocate, because the vector had this capacity when all results were free
  free_results_.push_back(result);
}

std::string ProxyMemory::blocked_by() const {
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
         " requests wait: the thread has died or gets no CPU";
}

namespace {

const char* name_of(std::uint32_t op) {
  static constexpr const char* names[proxy_op_count] = {"none",
                                                        "put",
                                                        "put of a value",
                                                        "get",
                                                        "get of a value",
                                                        "atomic operation",
                                                        "put with signal",
                                                        "fence",
                                                        "quiet"};
  return op < proxy_op_count ? names[op] : "request";
}

Error bad_rings(const std::string& problem) {
  return {ExitCode::usage, "proxy threads", "", problem,
          "pass 1 to " + std::to_string(max_proxy_threads) + " threads, and only their FIFOs"};
}

/// The options, with missing ones filled in.
ProxyOptions completed(ProxyOptions options, std::size_t n_pes) {
  if (options.threads < 1 || options.threads > max_proxy_threads)
    throw bad_rings("invalid count: " + std::to_string(options.threads));
  if (options.fifo_of_pe.empty())
    for (std::size_t pe = 0; pe < n_pes; ++pe)
      options.fifo_of_pe.push_back(static_cast<std::uint8_t>(pe % options.threads));
  if (options.fifo_of_pe.size() != n_pes ||
      std::any_of(options.fifo_of_pe.begin(), options.fifo_of_pe.end(),
                  [&](std::uint8_t ring) { return ring >= options.threads; }))
    throw bad_rings("the FIFOs of the PEs do not match these threads");
  return options;
}

} // namespace

ProxyChannel::ProxyChannel(JobHealth& health, const ProxyOptions& options, std::size_t n_pes)
    : health_(health), options_(completed(options, n_pes)) {
  for (unsigned ring = 0; ring < options_.threads; ++ring) {
    memories_.push_back(std::make_unique<ProxyMemory>(options_));
    views_.push_back(memories_.back()->view());
  }
  rings_ = {views_.data(), options_.fifo_of_pe.data(), n_fifos(), static_cast<std::int32_t>(n_pes)};
}

void ProxyChannel::fail(const Error& error, Condition condition, unsigned ring) noexcept {
  const std::lock_guard lock(error_mutex_);
  try {
    if (!error_)
      error_ = error;
  } catch (const std::bad_alloc&) {
    // throw_failure() reports the lack of memory.
  }
  for (unsigned each = 0; each < n_fifos(); ++each) {
    const Condition ring_condition = each == ring ? condition : Condition::failed;
    std::uint64_t& failed = memories_[each]->header().failed;
    // Release: a reader that sees this also sees the error.
    HostAtomics::store_release(&failed,
                               std::max(failed, static_cast<std::uint64_t>(ring_condition)));
  }
}

void ProxyChannel::throw_failure() const {
  const std::lock_guard lock(error_mutex_);
  if (!error_)
    throw Error(ExitCode::unavailable, "proxy", "store its error", "out of memory",
                "free host memory");
  throw *error_;
}

Error ProxyChannel::timeout_error(const std::string& step, unsigned ring) const {
  const std::string which = n_fifos() > 1 ? " of ring " + std::to_string(ring) : "";
  return {ExitCode::deadline, step + which, "complete",
          "timed out: " + memories_[ring]->blocked_by(),
          "check this process's threads and the GPU's kernels, or " + raise_timeout()};
}

void ProxyChannel::give_up(const std::string& step, unsigned ring) {
  try {
    const std::uint64_t word = HostAtomics::load_relaxed(&header(ring).serving);
    if (word != 0) {
      const ProxyServing serving = to_serving(word);
      health_.give_up(step + " (the proxy performs: " + name_of(serving.op) + ")", serving.pe);
    }
    throw timeout_error(step, ring);
  } catch (const Error& error) {
    fail(error);
    throw;
  }
}

bool ProxyWait::pause_long() {
  if (!began_)
    began_ = Deadline::Clock::now();
  if (!backoff_.pause())
    return true;
  if (channel_.condition(ring_) == ProxyChannel::Condition::stuck)
    channel_.throw_failure();
  channel_.health().check();
  if (Deadline::Clock::now() - *began_ >
      std::chrono::duration<double>(channel_.options().timeout_s))
    channel_.give_up(step_, ring_);
  return true;
}

} // namespace shmemctl
