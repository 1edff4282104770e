#include "src/runtime/rma.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "src/base/error.h"

namespace shmemctl {

namespace {

/// A few microseconds. With more PEs than cores, or on a busy machine, who is waited for is not
/// running, and spinning longer costs its whole time slice; where nobody else wants the core, a
/// yield costs no more than a few spins.
constexpr int spins_before_yield = 100;
constexpr int yields_before_sleep = 200;
/// A word that comes over a network takes microseconds to hundreds of them, and waking up takes
/// longer than most. Two PEs that both sleep for each other wait for little else; so one whose
/// peer has lost its core for a time slice is still there when it comes back.
constexpr auto yielding_for_network = std::chrono::milliseconds(10);
constexpr auto longest_sleep = std::chrono::microseconds(200);

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// For waits on a word in memory, often of less than a microsecond: spins first. Gets slower the
/// longer a wait lasts: the PE that is waited for may need this core.
class SpinBackoff {
public:
  /// @param network the word may come over one
  explicit SpinBackoff(bool network) : network_(network) {}

  /// True now and then: time to look at clocks and at the job's health.
  bool pause() {
    ++count_;
    if (count_ < spins_before_yield) {
      if (!network_) // there, asking the transports is pause enough; a hypervisor may trap this one
        pause_cpu();
      return false;
    }
    if (yields()) {
      std::this_thread::yield();
      return count_ % turns_between_clocks == 0;
    }
    std::this_thread::sleep_for(sleep_);
    sleep_ = std::min<std::chrono::microseconds>(sleep_ * 2, longest_sleep);
    return true;
  }

private:
  static constexpr int turns_between_clocks = 16;

  bool yields() {
    if (!network_)
      return count_ < spins_before_yield + yields_before_sleep;
    if (!sleeps_ && count_ % turns_between_clocks == 0)
      sleeps_ = Deadline::Clock::now() - began_ >= yielding_for_network;
    return !sleeps_;
  }

  const bool network_;
  const Deadline::Clock::time_point began_ = Deadline::Clock::now();
  int count_ = 0;
  bool sleeps_ = false;
  std::chrono::microseconds sleep_{1};
};

std::string text_of(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return std::string("address ") + text;
}

Error bad_address(const void* address) {
  return {ExitCode::usage, text_of(address), "translate", "it is not in a symmetric object",
          "use memory from shmem_malloc, or a global or static variable"};
}

void require_aligned(const void* address, std::size_t size_bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % size_bytes != 0)
    throw Error(ExitCode::usage, text_of(address), "perform an atomic",
                "not aligned to " + std::to_string(size_bytes) + " bytes",
                "use an aligned variable");
}

} // namespace

Rma::Rma(int pe, int n_pes, std::vector<Transport*> way_to, JobHealth& health, double timeout_s,
         bool checked)
    : pe_(pe), n_pes_(n_pes), way_to_(std::move(way_to)), health_(health),
      only_loads_and_stores_(false), direct_atomics_(true), timeout_s_(timeout_s),
      checked_(checked), places_(n_pes) {
  list_transports();
}

void Rma::set_gpu_ways(std::vector<Transport*> way_to) {
  gpu_way_to_ = std::move(way_to);
  list_transports();
}

void Rma::list_transports() {
  transports_ = way_to_;
  transports_.insert(transports_.end(), gpu_way_to_.begin(), gpu_way_to_.end());
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
  const std::vector<Transport*>& way_to = ways(region.region);
  RegionView direct = region;
  for (std::size_t pe = 0; pe < direct.mapped.size(); ++pe)
    if (pe >= way_to.size() || !way_to[pe] || !way_to[pe]->is_load_store())
      direct.mapped[pe] = nullptr;
  places_.set(direct);
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
                "it ends beyond symmetric memory", "transfer less");
  const std::vector<Transport*>& way_to = ways(address.region);
  if (way_to.empty() || !way_to[static_cast<std::size_t>(address.pe)])
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
  const auto held = turn(context);
  way(address).put(context, address, source, size_bytes, blocking);
}

void Rma::get_by_transport(void* target, const void* source, std::size_t size_bytes, int pe,
                           int context, bool blocking) {
  if (size_bytes == 0)
    return;
  const RemoteAddress address = locate(source, pe);
  require(address, source, size_bytes);
  require_local(address, target);
  const auto held = turn(context);
  way(address).get(context, target, address, size_bytes, blocking);
}

std::uint64_t Rma::atomic_by_transport(void* target, AtomicOp op, std::uint8_t size_bytes,
                                       std::uint64_t operand, std::uint64_t compare, int pe,
                                       int context) {
  const auto held = turn(context);
  const RemoteAddress address = locate(target, pe);
  require(address, target, size_bytes);
  if (checked_)
    require_aligned(target, size_bytes);
  return way(address).atomic(context, address, {op, size_bytes, operand, compare});
}

void Rma::post_atomic_by_transport(void* target, AtomicOp op, std::uint8_t size_bytes,
                                   std::uint64_t operand, std::uint64_t compare, int pe,
                                   int context) {
  const auto held = turn(context);
  const RemoteAddress address = locate(target, pe);
  require(address, target, size_bytes);
  if (checked_)
    require_aligned(target, size_bytes);
  way(address).post_atomic(context, address, {op, size_bytes, operand, compare});
}

void Rma::put_value_otherwise(void* target, std::uint64_t value, std::size_t size_bytes, int pe,
                              int context) {
  put(target, &value, size_bytes, pe, context); // little-endian: the value's bytes come first
}

std::uint64_t Rma::get_value_otherwise(const void* source, std::size_t size_bytes, int pe,
                                       int context) {
  std::uint64_t value = 0;
  get(&value, source, size_bytes, pe, context);
  return value;
}

void Rma::put_signal(void* target, const void* source, std::size_t size_bytes,
                     std::uint64_t* signal, std::uint64_t signal_value, SignalOp op, int pe,
                     int context, bool blocking) {
  std::byte* const signal_place =
      direct_atomics_ ? places_.find(signal, sizeof *signal, pe) : nullptr;
  std::byte* const place = size_bytes > 0 ? places_.find(target, size_bytes, pe) : signal_place;
  if (signal_place && place && !near_gpu_memory(source) &&
      reinterpret_cast<std::uintptr_t>(signal) % sizeof *signal == 0) {
    if (size_bytes > 0)
      copy_to_shared(place, source, size_bytes);
    return signal_shared(signal_place, signal_value, op);
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
  const auto held = turn(context);
  if (&way(address) != &way(signal_address)) { // one in GPU memory, one in the host's
    way(address).put(context, address, source, size_bytes, true);
    way(address).quiet(context);
    size_bytes = 0;
    address = signal_address;
  }
  way(signal_address)
      .put_signal(context, address, source, size_bytes, signal_address, signal_value, op, blocking);
}

/// Regions of the host and of the GPU may have ways of their own to one PE. Each keeps order among
/// what it carries and knows nothing of the others, so what comes behind the fence by another way
/// waits here. Where nothing is under way that costs little.
void Rma::fence_transports(int context) {
  const auto held = turn(context);
  const bool two_ways = !gpu_way_to_.empty() && gpu_way_to_ != way_to_;
  for (Transport* transport : transports_)
    two_ways ? transport->quiet(context) : transport->fence(context);
}

void Rma::quiet_transports(int context) {
  const auto held = turn(context);
  for (Transport* transport : transports_)
    transport->quiet(context);
}

template <class Condition>
void Rma::wait_for(Condition&& condition, const char* step, int peer) {
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(timeout_s_));
  SpinBackoff backoff(!only_loads_and_stores_);
  health_.waiting_for(peer);
  while (!condition()) {
    for (Transport* transport : transports_)
      transport->progress();
    if (!backoff.pause())
      continue;
    health_.check();
    if (deadline.passed())
      health_.give_up(step, peer);
  }
  health_.waiting_for(-1);
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

} // namespace shmemctl
