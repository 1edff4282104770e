#include "transports/mlx5/emulated/emulated_hca.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/prctl.h>
#include <system_error>

#include "src/base/error.h"
#include "src/base/service_thread.h"
#include "transports/mlx5/qp_layout.h"

namespace shmemctl::mlx5 {

namespace {

/// The doorbell register is plain memory, so the emulated HCA does not notice if the same value is
/// written again. While a doorbell of a QP of n WQEBBs is pending, the register's index can advance
/// by at most 2n, which must not wrap its 16 bits.
constexpr std::uint32_t max_emulated_wqebbs = max_qp_wqebbs / 2;

/// How the thread waits for doorbells.
class Idle {
public:
  explicit Idle(const EmulatedHcaOptions& options) : options_(options) {}

  void reset() {
    turns_ = 0;
    nap_ = std::chrono::microseconds(2);
  }
  /// Whether the next pause() spins, without giving the core away.
  bool spins() const { return turns_ < options_.idle_spins; }
  void pause() {
    ++turns_;
    if (turns_ <= options_.idle_spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (turns_ <= options_.idle_spins + options_.idle_yields) {
      std::this_thread::yield();
    } else {
      turns_ = options_.idle_spins + options_.idle_yields; // prevents an overflow
      std::this_thread::sleep_for(std::min(nap_, options_.longest_nap));
      nap_ = std::min(nap_ * 2, options_.longest_nap);
    }
  }

private:
  const EmulatedHcaOptions& options_;
  int turns_ = 0;
  std::chrono::microseconds nap_{2};
};

} // namespace

// Memory.

EmulatedMemory::~EmulatedMemory() {
  const EmulatedHca::Held held(hca_);
  hca_.keys_.remove(window_.key);
}

// Queues.

void EmulatedHcaQp::PageMemory::operator()(void* memory) const {
  std::free(memory);
}

EmulatedHcaQp::EmulatedHcaQp(EmulatedHca& hca, const QpOptions& options, std::uint32_t qpn)
    : hca_(hca) {
  const QpLayout layout = qp_layout(options);
  void* base = options.memory;
  if (!base) {
    memory_.reset(std::aligned_alloc(page_bytes_of(options), layout.size_bytes));
    if (!memory_)
      throw Error(ExitCode::unavailable, hca.info().device, "create a QP", "out of memory",
                  "lower SHMEMCTL_QP_DEPTH, or free memory");
    base = memory_.get();
    std::memset(base, 0, layout.size_bytes);
  } else if (options.memory_bytes < layout.size_bytes) {
    throw Error(ExitCode::usage, hca.info().device, "create a QP",
                "its memory has " + std::to_string(options.memory_bytes) + " bytes instead of " +
                    std::to_string(layout.size_bytes),
                "use the size that qp_layout() returns");
  }
  view_ = queue_view(options, layout, base);
  view_.qpn = qpn;
  if (memory_)
    prepare_completions(view_, layout);
  device_ = std::make_unique<EmulatedQp>(view_, hca.keys_, hca.options_.order.placement);
}

EmulatedHcaQp::~EmulatedHcaQp() {
  const EmulatedHca::Held held(hca_);
  std::erase(hca_.queues_, device_.get());
}

PeerInfo EmulatedHcaQp::local() const {
  PeerInfo info;
  info.qpn = view_.qpn;
  info.device_id = hca_.options_.device_id;
  info.capabilities = capabilities_of(hca_.info_);
  info.mtu = 5;
  return info;
}

void EmulatedHcaQp::connect(const PeerInfo& peer) {
  if (connected_)
    throw Error(ExitCode::usage, hca_.info().device, "connect a QP", "it is already connected",
                "report this as a bug in shmemctl, with the command line");
  std::shared_ptr<Executor> path = hca_.options_.path_to_peer(peer);
  const EmulatedHca::Held held(hca_);
  device_->connect(std::move(path));
  abilities_ = abilities_of(capabilities_of(hca_.info_), peer.capabilities);
  connected_ = true;
}

void EmulatedHcaQp::progress() {
  if (!hca_.options_.has_thread)
    hca_.poll();
  else if (hca_.options_.waiters_help)
    hca_.help();
}

std::optional<std::string> EmulatedHcaQp::fatal_event() {
  return device_->fatal_event();
}

std::string EmulatedHcaQp::detail(std::uint16_t wqe_counter) const {
  const EmulatedQp::Detail detail = device_->detail();
  if (detail.text.empty() || detail.index == wqe_counter)
    return detail.text;
  return "WQE " + std::to_string(detail.index) + " failed first: " + detail.text;
}

void EmulatedHcaQp::inject(const InjectedFault& fault) {
  const EmulatedHca::Held held(hca_);
  device_->inject(fault);
}

std::uint64_t EmulatedHcaQp::executed() const {
  const EmulatedHca::Held held(hca_);
  return device_->executed();
}

// The HCA.

EmulatedHca::Held::Held(EmulatedHca& hca) : lock_(hca.gate_, std::defer_lock) {
  hca.waiting_.fetch_add(1, std::memory_order_relaxed);
  lock_.lock();
  hca.waiting_.fetch_sub(1, std::memory_order_relaxed);
}

EmulatedHca::EmulatedHca(EmulatedHcaOptions options) : options_(std::move(options)) {
  info_.device = options_.name;
  info_.emulated = true;
  info_.max_wqebbs = max_emulated_wqebbs;
  info_.max_rdma_bytes = max_rdma_bytes;
  const EmulatedOrder& order = options_.order;
  info_.atomic_bytes = order.has_atomics ? 4 + 8 : 0;
  info_.orders_writes =
      order.claim == EmulatedOrder::Claim::kept ||
      (order.claim == EmulatedOrder::Claim::truth && order.placement == Placement::ordered);
  if (options_.has_thread)
    thread_ = start_service_thread("emulated-mlx5", [this] { run(); });
}

EmulatedHca::~EmulatedHca() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable())
    thread_.join();
}

std::unique_ptr<HcaMemory> EmulatedHca::register_mapped(const MemoryRequest& request,
                                                        std::byte* mapped) {
  const Held held(*this);
  KeyWindow window;
  // The key is an index with a tag in its low byte, as on a real device.
  window.key = next_key_ << 8 | (next_key_ & 0xff);
  ++next_key_;
  window.address = reinterpret_cast<std::uint64_t>(request.base);
  window.size_bytes = request.size_bytes;
  window.access = request.access;
  window.mapped = mapped;
  // Executors know which transport copies GPU memory, or refuse such memory.
  window.is_gpu = request.gpu != nullptr;
  keys_.add(window);
  return std::make_unique<EmulatedMemory>(*this, window);
}

std::unique_ptr<HcaQp> EmulatedHca::create_queue(const QpOptions& options) {
  if (options.wqebbs > max_emulated_wqebbs)
    throw Error(ExitCode::usage, info_.device, "create a QP",
                "SHMEMCTL_QP_DEPTH, rounded up to a power of two, is " +
                    std::to_string(options.wqebbs) +
                    " WQEBBs, and the emulated HCA's send queues have at most " +
                    std::to_string(max_emulated_wqebbs),
                "lower SHMEMCTL_QP_DEPTH to " + std::to_string(max_emulated_wqebbs) + " or less");
  const Held held(*this);
  queues_.reserve(queues_.size() + 1); // so that push_back() below cannot throw
  auto queue = std::make_unique<EmulatedHcaQp>(*this, options, next_qpn_++ & 0xffffff);
  queues_.push_back(queue->device_.get());
  return queue;
}

unsigned EmulatedHca::poll() {
  const Held held(*this);
  return serve_all();
}

void EmulatedHca::help() {
  if (!rests_.load(std::memory_order_relaxed))
    return;
  const std::unique_lock lock(gate_, std::try_to_lock);
  if (lock.owns_lock())
    serve_all();
}

unsigned EmulatedHca::serve_all() {
  unsigned count = 0;
  for (EmulatedQp* queue : queues_)
    count += queue->serve(options_.batch);
  return count;
}

void EmulatedHca::let_in() {
  gate_.unlock();
  while (waiting_.load(std::memory_order_relaxed) > 0)
    std::this_thread::yield();
  gate_.lock();
}

void EmulatedHca::run() noexcept {
  ::prctl(PR_SET_TIMERSLACK, 1000); // ns; with the default, a nap of 2 µs would take 50 µs more
  Idle idle(options_);
  gate_.lock();
  while (!stop_.load(std::memory_order_relaxed)) {
    if (waiting_.load(std::memory_order_relaxed) > 0)
      let_in();
    if (serve_all() > 0) {
      idle.reset();
    } else if (idle.spins()) {
      idle.pause();
    } else {
      rests_.store(true, std::memory_order_relaxed);
      gate_.unlock();
      idle.pause();
      gate_.lock();
      rests_.store(false, std::memory_order_relaxed);
    }
  }
  gate_.unlock();
}

} // namespace shmemctl::mlx5
