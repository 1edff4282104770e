#include "src/runtime/proxy/proxy.h"

#include <algorithm>
#include <pthread.h>
#include <sys/prctl.h>
#include <system_error>

namespace shmemctl {

namespace {

constexpr unsigned batches_between_looks = 64;
constexpr auto first_nap = std::chrono::microseconds(2);
/// For requests that were reserved before an end without stop().
constexpr std::chrono::duration<double> abandoned_s{1.0};

/// How the thread waits for requests.
class Idle {
public:
  explicit Idle(const ProxyOptions& options) : options_(options) { reset(); }

  void reset() {
    turns_ = 0;
    nap_ = std::min<std::chrono::microseconds>(first_nap, options_.longest_nap);
  }
  enum class Did { spin, yield, nap };
  Did pause() {
    ++turns_;
    if (turns_ <= options_.idle_spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      return Did::spin;
    }
    if (turns_ <= options_.idle_spins + options_.idle_yields) {
      std::this_thread::yield();
      return Did::yield;
    }
    turns_ = options_.idle_spins + options_.idle_yields; // does not overflow
    std::this_thread::sleep_for(nap_);
    nap_ = std::min(nap_ * 2, options_.longest_nap);
    return Did::nap;
  }
  int turns() const {
    return turns_;
  }

private:
  const ProxyOptions& options_;
  int turns_ = 0;
  std::chrono::microseconds nap_{};
};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
  // One writer: no read-modify-write is needed.
  counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

} // namespace

Proxy::Proxy(std::vector<Transport*> way_to, JobHealth& health, const ProxyOptions& options)
    : channel_(health, options), sink_(std::move(way_to), channel_),
      drain_(channel_.view(), channel_.header().first_sequence, options.limits, sink_),
      drain_until_(Deadline::Clock::time_point::max()) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ExitCode::unavailable, "the proxy's thread", "start", error.what(),
                "raise the limit of processes (ulimit -u)");
  }
}

Proxy::~Proxy() {
  if (!thread_.joinable())
    return;
  abandon_.store(true, std::memory_order_release);
  end_thread();
}

void Proxy::end_thread() {
  stop_.store(true, std::memory_order_release);
  if (thread_.joinable())
    thread_.join();
}

void Proxy::stop() {
  end_thread();
  if (channel_.condition() != ProxyChannel::Condition::well)
    channel_.throw_failure();
}

ProxyStatistics Proxy::statistics() const {
  ProxyStatistics statistics;
  statistics.requests = requests_.load(std::memory_order_relaxed);
  statistics.batches = batches_.load(std::memory_order_relaxed);
  statistics.max_depth = max_depth_.load(std::memory_order_relaxed);
  statistics.naps = naps_.load(std::memory_order_relaxed);
  statistics.stalled_s = channel_.stalled_s();
  return statistics;
}

void Proxy::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "proxy");
  ::prctl(PR_SET_TIMERSLACK, 1000); // ns: a nap of 2 µs is not one of 50
  work();
  sink_.quiet();
  sink_.rest();
  if (!drain_.finished())
    channel_.fail(channel_.overdue("last requests of the proxy"), ProxyChannel::Condition::stuck);
}

void Proxy::work() {
  Idle idle(channel_.options());
  unsigned batches = 0;
  while (!drain_.finished() && !left_behind()) {
    const unsigned taken = drain_.poll();
    sink_.progress();
    if (taken > 0) {
      count(taken);
      idle.reset();
      if (++batches % batches_between_looks == 0)
        look();
      continue;
    }
    if (idle.turns() == 0)
      sink_.rest();
    const Idle::Did did = idle.pause();
    if (did == Idle::Did::nap)
      add(naps_, 1);
    if (did != Idle::Did::spin || idle.turns() % 64 == 0)
      look();
  }
}

void Proxy::count(unsigned taken) {
  add(requests_, taken);
  add(batches_, 1);
  // The producers' counter is only read when there may be more than was taken.
  const std::uint64_t left = taken < channel_.options().limits.batch ? 0 : drain_.depth();
  const std::uint64_t depth = std::max<std::uint64_t>(taken, left);
  if (depth > max_depth_.load(std::memory_order_relaxed))
    max_depth_.store(depth, std::memory_order_relaxed);
}

void Proxy::look() {
  if (channel_.condition() == ProxyChannel::Condition::well) {
    try {
      channel_.health().check();
    } catch (const Error& error) {
      channel_.fail(error);
    }
  }
  if (drain_.closed() || !stop_.load(std::memory_order_acquire))
    return;
  const bool abandon = abandon_.load(std::memory_order_acquire);
  if (abandon)
    channel_.fail(Error(ExitCode::unavailable, "proxy", "carry out a request",
                        "the runtime is ending", "see the first error"));
  drain_.close();
  drain_until_ = Deadline::after(
      abandon ? abandoned_s : std::chrono::duration<double>(channel_.options().timeout_s));
}

bool Proxy::left_behind() const {
  return drain_.closed() && drain_until_.passed();
}

} // namespace shmemctl
