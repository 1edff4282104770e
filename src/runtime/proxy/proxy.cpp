#include "src/runtime/proxy/proxy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "src/base/error.h"
#include "src/base/service_thread.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr unsigned batches_between_polls = 64;
constexpr auto first_sleep = std::chrono::microseconds(2);
/// Time limit for requests that were reserved before the proxy is destroyed without stop().
constexpr std::chrono::duration<double> abandoned_s{1.0};

/// The waits of an idle thread.
class Idle {
public:
  explicit Idle(const ProxyOptions& options) : options_(options) { reset(); }

  void reset() {
    turns_ = 0;
    sleep_ = std::min<std::chrono::microseconds>(first_sleep, options_.max_sleep);
  }
  enum class Did { spin, yield, sleep };
  Did pause() {
    ++turns_;
    if (turns_ <= options_.idle_spins && !spun_enough()) {
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
    std::this_thread::sleep_for(sleep_);
    sleep_ = std::min(sleep_ * 2, options_.max_sleep);
    return Did::sleep;
  }
  int turns() const {
    return turns_;
  }

private:
  /// A poll includes the transports' progress and may take long, while other threads wait for the
  /// core. So spinning also has a time limit.
  bool spun_enough() {
    constexpr int iterations_between_polls = 32;
    if (turns_ == 1)
      spinning_since_ = Deadline::Clock::now();
    if (turns_ % iterations_between_polls != 0 ||
        Deadline::Clock::now() - spinning_since_ < options_.max_spin)
      return false;
    turns_ = options_.idle_spins + 1;
    return true;
  }

  const ProxyOptions& options_;
  int turns_ = 0;
  std::chrono::microseconds sleep_{};
  Deadline::Clock::time_point spinning_since_;
};

void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
  // There is only one writer, so no atomic read-modify-write is needed.
  counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

/// Returns 0 or an errno.
int set_affinity(pthread_t thread, const CpuSet& cpus) {
  const auto count = static_cast<std::size_t>(cpus.last()) + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(count), [](cpu_set_t* memory) { CPU_FREE(memory); });
  if (!set)
    return ENOMEM;
  const std::size_t size_bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(size_bytes, set.get());
  for (const int cpu : cpus.cpus())
    CPU_SET_S(static_cast<std::size_t>(cpu), size_bytes, set.get());
  return ::pthread_setaffinity_np(thread, size_bytes, set.get());
}

} // namespace

ProxyThread::ProxyThread(std::vector<Transport*> transports_by_pe, ProxyChannel& channel,
                         unsigned ring)
    : channel_(channel), ring_(ring), sink_(std::move(transports_by_pe), channel, ring),
      drain_(channel.view(ring), channel.header(ring).first_sequence, channel.options().limits,
             sink_),
      drain_until_(Deadline::Clock::time_point::max()) {}

ProxyThread::~ProxyThread() {
  end(true);
  join();
}

void ProxyThread::start(const CpuSet& cpus) {
  thread_ = start_service_thread(ring_ == 0 ? "proxy" : "proxy " + std::to_string(ring_),
                                 [this] { run(); });
  if (cpus.empty())
    return;
  if (const int problem = set_affinity(thread_.native_handle(), cpus); problem != 0)
    throw Error(ExitCode::usage, "proxy thread", "bind to CPU " + format_cpulist(cpus),
                std::strerror(problem),
                "name CPUs in SHMEMCTL_PROXY_CPUS that this process may use");
}

void ProxyThread::end(bool abandon) {
  if (abandon)
    abandon_.store(true, std::memory_order_release);
  stop_.store(true, std::memory_order_release);
}

void ProxyThread::join() {
  if (thread_.joinable())
    thread_.join();
}

ProxyStatistics ProxyThread::statistics() const {
  ProxyStatistics statistics;
  statistics.requests = requests_.load(std::memory_order_relaxed);
  statistics.batches = batches_.load(std::memory_order_relaxed);
  statistics.max_depth = max_depth_.load(std::memory_order_relaxed);
  statistics.sleeps = sleeps_.load(std::memory_order_relaxed);
  return statistics;
}

void ProxyThread::run() noexcept {
  ::prctl(PR_SET_TIMERSLACK, 1000); // ns: otherwise a sleep of 2 µs would take 50 µs
  work();
  sink_.quiet();
  sink_.rest();
  if (!drain_.finished())
    channel_.fail(channel_.timeout_error("last requests of the proxy", ring_),
                  ProxyChannel::Condition::stuck, ring_);
}

void ProxyThread::work() {
  Idle idle(channel_.options());
  unsigned batches = 0;
  while (!drain_.finished() && !left_behind()) {
    const unsigned taken = drain_.poll();
    sink_.progress();
    if (taken > 0) {
      count(taken);
      idle.reset();
      if (++batches % batches_between_polls == 0)
        check_health();
      continue;
    }
    if (idle.turns() == 0)
      sink_.rest();
    const Idle::Did did = idle.pause();
    if (did == Idle::Did::sleep)
      add(sleeps_, 1);
    if (did != Idle::Did::spin || idle.turns() % 64 == 0)
      check_health();
  }
}

void ProxyThread::count(unsigned taken) {
  add(requests_, taken);
  add(batches_, 1);
  // The producers' counter is read only if there may be more requests than were taken.
  const bool all_taken =
      taken < channel_.options().limits.batch || channel_.options().issued_in_device_memory;
  const std::uint64_t left = all_taken ? 0 : drain_.depth();
  const std::uint64_t depth = std::max<std::uint64_t>(taken, left);
  if (depth > max_depth_.load(std::memory_order_relaxed))
    max_depth_.store(depth, std::memory_order_relaxed);
}

void ProxyThread::check_health() {
  if (channel_.condition(ring_) == ProxyChannel::Condition::well) {
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
    channel_.fail(Error(ExitCode::unavailable, "proxy", "perform a request",
                        "the runtime is shutting down", "check the first error"));
  drain_.close();
  drain_until_ = Deadline::after(
      abandon ? abandoned_s : std::chrono::duration<double>(channel_.options().timeout_s));
}

bool ProxyThread::left_behind() const {
  return drain_.closed() && drain_until_.passed();
}

Proxy::Proxy(const std::vector<Transport*>& transports_by_pe, JobHealth& health,
             const ProxyOptions& options)
    : channel_(health, options, transports_by_pe.size()) {
  for (unsigned ring = 0; ring < channel_.n_fifos(); ++ring)
    threads_.push_back(std::make_unique<ProxyThread>(transports_by_pe, channel_, ring));
  for (unsigned ring = 0; ring < channel_.n_fifos(); ++ring)
    threads_[ring]->start(ring < options.cpus.size() ? options.cpus[ring] : CpuSet());
}

Proxy::~Proxy() {
  end_threads(true);
}

void Proxy::end_threads(bool abandon) {
  for (const auto& thread : threads_)
    thread->end(abandon);
  for (const auto& thread : threads_)
    thread->join();
}

void Proxy::stop() {
  end_threads(false);
  if (channel_.condition() != ProxyChannel::Condition::well)
    channel_.throw_failure();
}

ProxyStatistics Proxy::statistics() const {
  ProxyStatistics sum;
  for (const auto& thread : threads_) {
    const ProxyStatistics one = thread->statistics();
    sum.requests += one.requests;
    sum.batches += one.batches;
    sum.sleeps += one.sleeps;
    sum.max_depth = std::max(sum.max_depth, one.max_depth);
  }
  sum.stalled_s = channel_.stalled_s();
  return sum;
}

CpuSet proxy_cpus(const Options& options) {
  const std::string text = options.text("PROXY_CPUS");
  const auto cpus = parse_cpulist(text);
  if (!cpus)
    throw Error(ExitCode::usage, "SHMEMCTL_PROXY_CPUS=" + printable(text), "",
                "not a CPU list such as 2,4-7", "name CPUs that this process may use");
  return *cpus;
}

ProxyOptions proxy_options(const Options& options, const Placement& placement,
                           const CpuSet& cpus_at_start, double timeout_s) {
  ProxyOptions made;
  made.timeout_s = timeout_s;
  made.threads = static_cast<unsigned>(options.integer("PROXY_THREADS"));
  for (std::size_t pe = 0; pe < placement.node.size(); ++pe) {
    const int turn = placement.node[pe] + placement.local_pe[pe];
    made.fifo_of_pe.push_back(
        static_cast<std::uint8_t>(static_cast<unsigned>(turn) % made.threads));
  }
  const CpuSet named = proxy_cpus(options);
  const std::vector<int> cpus = named.cpus();
  for (unsigned thread = 0; thread < made.threads; ++thread)
    made.cpus.push_back(named.empty()                ? cpus_at_start
                        : cpus.size() < made.threads ? named
                                                     : CpuSet{cpus[thread]});
  return made;
}

} // namespace shmemctl
