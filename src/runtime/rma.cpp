#include "src/runtime/rma.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "src/base/error.h"
#include "src/base/wait.h"

namespace shmemctl {

namespace {

/// For waits on a word in memory, which often take less than a microsecond, so the spins last only
/// a few microseconds. With more PEs than cores the awaited PE may not be running, and a longer
/// spin would keep the core from it for a whole time slice; if no other thread wants the core, a
/// yield is cheap.
BackoffPolicy backoff_policy(bool network) {
  BackoffPolicy policy;
  // A word from a network arrives after microseconds to hundreds of microseconds, and waking up
  // usually takes longer. If both PEs of a pair slept, they would mostly wait for each other to
  // wake up. So a PE yields for long enough to be still polling when a peer that has lost its core
  // for a time slice runs again.
  if (network) {
    policy.min_yield_time = std::chrono::milliseconds(10);
    policy.relaxes = false; // progress() is enough of a pause, and a hypervisor may trap `pause`
  }
  return policy;
}

std::string text_of(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return std::string("address ") + text;
}

Error bad_address(const void* address) {
  return {ExitCode::usage, text_of(address), "access", "it is not in a symmetric object",
          "use memory from shmem_malloc, or a global or static variable"};
}

void require_aligned(const void* address, std::size_t size_bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % size_bytes != 0)
    throw Error(ExitCode::usage, text_of(address), "perform an atomic",
                "not aligned to " + std::to_string(size_bytes) + " bytes",
                "use an aligned variable");
}

} // namespace

Rma::Rma(int pe, int n_pes, std::vector<Transport*> transports_by_pe, JobHealth& health,
         double timeout_s, bool checked)
    : pe_(pe), n_pes_(n_pes), transports_by_pe_(std::move(transports_by_pe)), health_(health),
      only_loads_and_stores_(false), direct_atomics_(true), timeout_s_(timeout_s),
      checked_(checked), load_store_(n_pes) {
  list_transports();
}

void Rma::set_gpu_transports(std::vector<Transport*> transports_by_pe) {
  gpu_transports_by_pe_ = std::move(transports_by_pe);
  list_transports();
}

void Rma::list_transports() {
  transports_ = transports_by_pe_;
  transports_.insert(transports_.end(), gpu_transports_by_pe_.begin(), gpu_transports_by_pe_.end());
  std::sort(transports_.begin(), transports_.end());
  transports_.erase(std::unique(transports_.begin(), transports_.end()), transports_.end());
  transports_.erase(std::remove(transports_.begin(), transports_.end(), nullptr),
                    transports_.end());
  only_loads_and_stores_ =
      std::all_of(transports_.begin(), transports_.end(),
                  [](const Transport* transport) { return transport->has_direct_atomics(); });
  direct_atomics_ =
      std::none_of(transports_.begin(), transports_.end(), [](const Transport* transport) {
        return transport->is_load_store() && !transport->has_direct_atomics();
      });
}

void Rma::set_region(const RegionView& region) {
  regions_.set(region);
  const std::vector<Transport*>& transports_by_pe = transports_of_region(region.region);
  RegionView direct = region;
  for (std::size_t pe = 0; pe < direct.mapped.size(); ++pe)
    if (pe >= transports_by_pe.size() || !transports_by_pe[pe] ||
        !transports_by_pe[pe]->is_load_store())
      direct.mapped[pe] = nullptr;
  load_store_.set(direct);
  if (is_gpu_region(region.region))
    set_gpu_span(direct);
}

RemoteAddress Rma::locate(const void* address, int pe) const {
  const auto* byte = static_cast<const std::byte*>(address);
  for (std::size_t number = 0; number < limits::max_regions; ++number) {
    const RegionView& region = regions_[number];
    if (region.base && byte >= region.base && byte < region.base + region.size_bytes)
      return {pe, region.region, static_cast<std::uint64_t>(byte - region.base)};
  }
  return {pe, -1, 0};
}

void* Rma::direct(const void* address, int pe) const {
  const RemoteAddress place = locate(address, pe);
  if (place.region < 0 || pe < 0 || pe >= n_pes_)
    return nullptr;
  const RegionView& region = regions_[static_cast<std::size_t>(place.region)];
  const auto slot = static_cast<std::size_t>(pe);
  std::byte* base = slot < region.mapped.size() ? region.mapped[slot] : nullptr;
  return base ? base + place.offset_bytes : nullptr;
}

void Rma::require(const RemoteAddress& address, const void* local, std::size_t size_bytes) const {
  if (address.pe < 0 || address.pe >= n_pes_)
    throw Error(ExitCode::usage, "PE " + std::to_string(address.pe), "",
                "no such PE: the job has PEs 0 to " + std::to_string(n_pes_ - 1),
                "pass a PE of the job");
  if (address.region < 0)
    throw bad_address(local);
  const RegionView& region = regions_[static_cast<std::size_t>(address.region)];
  if (checked_ && size_bytes > region.size_bytes - address.offset_bytes)
    throw Error(ExitCode::usage, "transfer of " + std::to_string(size_bytes) + " bytes", "",
                "it ends beyond symmetric memory",
                "transfer no more bytes than the symmetric object holds");
  const std::vector<Transport*>& transports_by_pe = transports_of_region(address.region);
  if (transports_by_pe.empty() || !transports_by_pe[static_cast<std::size_t>(address.pe)])
    throw Error(ExitCode::unavailable, "PE " + std::to_string(address.pe), "reach",
                std::string("no transport connects ") +
                    (is_gpu_region(address.region) ? "its GPU memory" : "it") + " with PE " +
                    std::to_string(pe_),
                "run shmemctl bringup to see the reasons");
}

void Rma::put_by_transport(void* target, const void* source, std::size_t size_bytes, int pe,
                           int context, bool blocking) {
  if (size_bytes == 0)
    return;
  const RemoteAddress address = locate(target, pe);
  require(address, target, size_bytes);
  require_local(address, source);
  const auto held = lock_context(context);
  transport_of(address).put(context, address, source, size_bytes, blocking);
}

void Rma::get_by_transport(void* target, const void* source, std::size_t size_bytes, int pe,
                           int context, bool blocking) {
  if (size_bytes == 0)
    return;
  const RemoteAddress address = locate(source, pe);
  require(address, source, size_bytes);
  require_local(address, target);
  const auto held = lock_context(context);
  transport_of(address).get(context, target, address, size_bytes, blocking);
}

std::uint64_t Rma::atomic_by_transport(void* target, AtomicOp op, std::uint8_t size_bytes,
                                       std::uint64_t operand, std::uint64_t compare, int pe,
                                       int context) {
  const auto held = lock_context(context);
  const RemoteAddress address = locate(target, pe);
  require(address, target, size_bytes);
  if (checked_)
    require_aligned(target, size_bytes);
  return transport_of(address).atomic(context, address, {op, size_bytes, operand, compare});
}

void Rma::post_atomic_by_transport(void* target, AtomicOp op, std::uint8_t size_bytes,
                                   std::uint64_t operand, std::uint64_t compare, int pe,
                                   int context) {
  const auto held = lock_context(context);
  const RemoteAddress address = locate(target, pe);
  require(address, target, size_bytes);
  if (checked_)
    require_aligned(target, size_bytes);
  transport_of(address).post_atomic(context, address, {op, size_bytes, operand, compare});
}

void Rma::put_value_by_transport(void* target, std::uint64_t value, std::size_t size_bytes, int pe,
                                 int context) {
  put(target, &value, size_bytes, pe, context); // little-endian: the value's bytes come first
}

std::uint64_t Rma::get_value_by_transport(const void* source, std::size_t size_bytes, int pe,
                                          int context) {
  std::uint64_t value = 0;
  get(&value, source, size_bytes, pe, context);
  return value;
}

void Rma::put_signal(void* target, const void* source, std::size_t size_bytes,
                     std::uint64_t* signal, std::uint64_t signal_value, SignalOp op, int pe,
                     int context, bool blocking) {
  std::byte* const mapped_signal =
      direct_atomics_ ? load_store_.find(signal, sizeof *signal, pe) : nullptr;
  std::byte* const place =
      size_bytes > 0 ? load_store_.find(target, size_bytes, pe) : mapped_signal;
  if (mapped_signal && place && !maybe_gpu_memory(source) &&
      reinterpret_cast<std::uintptr_t>(signal) % sizeof *signal == 0) {
    if (size_bytes > 0)
      copy_to_shared(place, source, size_bytes);
    return signal_shared(mapped_signal, signal_value, op);
  }
  const RemoteAddress signal_address = locate(signal, pe);
  require(signal_address, signal, sizeof *signal);
  if (checked_)
    require_aligned(signal, sizeof *signal);
  RemoteAddress address = signal_address; // a signal without payload has no target
  if (size_bytes > 0) {
    address = locate(target, pe);
    require(address, target, size_bytes);
    require_local(address, source);
  }
  const auto held = lock_context(context);
  if (&transport_of(address) !=
      &transport_of(signal_address)) { // one is in GPU memory, the other in host memory
    transport_of(address).put(context, address, source, size_bytes, true);
    transport_of(address).quiet(context);
    size_bytes = 0;
    address = signal_address;
  }
  transport_of(signal_address)
      .put_signal(context, address, source, size_bytes, signal_address, signal_value, op, blocking);
}

/// Host memory and GPU memory of the same PE may have different transports. A transport orders only
/// its own operations, so a fence is then a quiet of each transport, which costs little if nothing
/// is in flight.
void Rma::fence_transports(int context) {
  const auto held = lock_context(context);
  const bool two_ways =
      !gpu_transports_by_pe_.empty() && gpu_transports_by_pe_ != transports_by_pe_;
  for (Transport* transport : transports_)
    two_ways ? transport->quiet(context) : transport->fence(context);
}

void Rma::quiet_transports(int context) {
  const auto held = lock_context(context);
  for (Transport* transport : transports_)
    transport->quiet(context);
}

template <class Condition>
void Rma::wait_for(Condition&& condition, const char* step, int peer) {
  Wait wait(health_, timeout_s_, {step, peer}, backoff_policy(!only_loads_and_stores_));
  wait.announce();
  while (!condition()) {
    for (Transport* transport : transports_)
      transport->progress();
    wait.pause();
  }
}

std::uint64_t Rma::wait_longer(const std::uint64_t* word, Compare compare, std::uint64_t value,
                               const char* step, int peer) {
  std::atomic_ref<std::uint64_t> cell(*const_cast<std::uint64_t*>(word));
  std::uint64_t seen = 0;
  const auto holds = [&] {
    seen = cell.load(std::memory_order_acquire);
    return compares(compare, seen, value);
  };
  wait_for(holds, step, peer);
  return seen;
}

void Rma::wait(const std::function<bool()>& condition, const char* step, int peer) {
  wait_for(condition, step, peer);
}

// GPU memory: addresses that the CPU must not access.

/// Extends the span of GPU addresses by those parts of the region that are mapped here but that the
/// CPU must not access.
/// @param region the region, in which `mapped` contains only the parts that the CPU may access
void Rma::set_gpu_span(const RegionView& region) {
  const RegionView& whole = regions_[static_cast<std::size_t>(region.region)];
  std::uintptr_t begin = gpu_begin_, end = begin + gpu_span_;
  for (std::size_t pe = 0; pe < whole.mapped.size(); ++pe) {
    if (!whole.mapped[pe] || region.mapped[pe])
      continue;
    const auto first = reinterpret_cast<std::uintptr_t>(whole.mapped[pe]);
    begin = begin == end ? first : std::min(begin, first);
    end = std::max(end, first + whole.size_bytes);
  }
  gpu_span_ = end - begin; // stored first: a reader that sees only this store checks more addresses
                           // than necessary, not fewer
  gpu_begin_ = begin;
}

bool Rma::is_gpu_memory(const void* address) const {
  if (!maybe_gpu_memory(address))
    return false;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const int number : {region::gpu_heap, region::gpu_team_flags}) {
    const RegionView& region = regions_[static_cast<std::size_t>(number)];
    for (const std::byte* part : region.mapped)
      if (part && at - reinterpret_cast<std::uintptr_t>(part) < region.size_bytes)
        return true;
  }
  return false;
}

void Rma::require_local(const RemoteAddress& address, const void* local) const {
  if (is_gpu_region(address.region) || !is_gpu_memory(local))
    return;
  throw Error(ExitCode::usage,
              "transfer between local GPU memory and host memory of PE " +
                  std::to_string(address.pe),
              "", "no transport supports it",
              "copy the data to host memory first, or use symmetric GPU memory on both sides");
}

// For several threads of a PE: progress, and the serialisation of a context.

void Rma::progress() {
  for (Transport* transport : transports_)
    transport->progress();
}

void Rma::serialize(int context, bool on) {
  context_locks_[static_cast<std::size_t>(context)].serialized.store(on, std::memory_order_release);
}

std::unique_lock<std::mutex> Rma::lock_context(int context) {
  ContextLock& lane = context_locks_[static_cast<std::size_t>(context)];
  if (!lane.serialized.load(std::memory_order_acquire))
    return {};
  return std::unique_lock(lane.mutex);
}

} // namespace shmemctl
