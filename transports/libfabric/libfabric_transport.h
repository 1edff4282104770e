// The transport libfabric: setup, puts and gets, atomics, waits, and the service thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "transports/device_memory_user.h"
#include "transports/libfabric/devices.h"
#include "transports/libfabric/failures.h"
#include "transports/libfabric/rail.h"

namespace shmemctl::fabric {

class LibfabricTransport final : public Transport, public DeviceMemoryUser {
public:
  explicit LibfabricTransport(const TransportSetup& setup);
  ~LibfabricTransport() override;

  const char* name() const override { return "libfabric"; }
  std::string local_info() override;
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override;
  void use_nics(const std::vector<HcaPort>& nics) override;
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override;
  bool has_keys() const override { return true; }
  std::string set_region(const RegionView& region) override;
  void set_keys(int region, const std::vector<std::string>& keys) override;
  void add_local(void* base, std::size_t size_bytes) override;
  void remove_local(void* base) override;

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override;
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override;
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override;
  void post_atomic(int context, const RemoteAddress& target, const AtomicRequest& request) override;
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override;
  void fence(int context) override;
  void quiet(int context) override;
  void progress() override;

  // GPU memory, if the provider supports FI_HMEM.
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory, std::byte* base,
                                std::size_t size_bytes) override;
  void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) override {
    memory_.devices().add(region, std::move(memory));
  }
  void drop_device_region(int region) override { memory_.drop_device_region(region); }
  /// False: some providers do not keep any order, and with others the target's CPU writes signals.
  bool signals_device_memory() const override { return false; }

  bool atomics_coherent_with_cpu() const override;
  std::vector<NicTraffic> traffic() const override;
  std::string connection(int pe) const override;
  std::vector<NicPair> nics_to(int pe) const override;

private:
  /// Increments a counter while it exists.
  class CountedIn {
  public:
    explicit CountedIn(std::atomic<int>& count) : count_(count) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
    CountedIn(const CountedIn&) = delete;
    CountedIn& operator=(const CountedIn&) = delete;
    ~CountedIn() { count_.fetch_sub(1, std::memory_order_relaxed); }

  private:
    std::atomic<int>& count_;
  };

  /// The rail and the context that a call uses.
  struct Path {
    std::size_t rail_index;
    Rail& rail;
    ContextState& state;
    const char* step; ///< the operation, for error messages: "put", "get"
  };

  // Setup.
  std::vector<EndpointName> my_endpoints() const;
  void learn_peers(const std::vector<PeerLocation>& peers, const std::vector<std::string>& texts);

  // Puts and gets.
  Path path(int context, const char* step);
  Path path_by(std::size_t rail_index, int context, const char* step);
  void put_on(const Path& path, const RemoteAddress& target, const std::byte* source,
              std::size_t size_bytes, bool blocking, const std::uint64_t* immediate = nullptr,
              std::uint32_t* writes = nullptr);
  void put_word(const Path& path, const RemoteAddress& target, const AtomicRequest& word);
  std::size_t put_part(const Path& path, const RemoteAddress& target, const std::byte* source,
                       std::size_t size_bytes, bool blocking, const std::uint64_t* immediate);
  void get_on(const Path& path, std::byte* target, const RemoteAddress& source,
              std::size_t size_bytes, bool blocking);
  std::size_t get_part(const Path& path, std::byte* target, const RemoteAddress& source,
                       std::size_t size_bytes, bool blocking);
  /// Calls `part(path, offset, bytes)` for the parts of a transfer. A large transfer of host memory
  /// is divided among the endpoints, in multiples of 4 KiB; other transfers have a single part.
  template <class Part>
  void in_stripes(int context, const char* step, std::size_t size_bytes, bool of_gpu, Part&& part);
  /// The address if it is in host memory of this PE; else nullptr.
  std::byte* own_memory(const RemoteAddress& address) const;

  // Atomic operations and signals.
  Operation* begin_atomic(const Path& path, const RemoteAddress& target,
                          const AtomicRequest& request, bool waited, std::uint64_t flags);
  void post_staged(const Path& path, Operation& operation, const RemoteAddress& target,
                   const AtomicRequest& request, MessageKind kind, std::uint32_t sequence = 0,
                   std::uint32_t writes = 0);

  // Operations and waits.
  Operation& take(const Path& path, OperationKind kind, int pe);
  std::byte* take_bounce(const Path& path, int pe);
  /// Counts the operation as pending, and posts it by `call`, which is repeated while the provider
  /// has no room.
  template <class Call>
  void post(const Path& path, Operation& operation, Call&& call);
  /// Waits until an operation with `waited` set is complete. Then the caller must give it back to
  /// its pool; if this function throws, the caller must not.
  void wait_operation(const Path& path, Operation& operation);
  void wait_pending(int context, bool atomics_only, const char* step);
  /// Polls until done() returns true. @param peer returns the PE that is waited for; called only if
  /// the wait takes long
  template <class Done, class Peer>
  void wait(Done&& done, const char* step, Peer&& peer);
  void check_peer(int pe);
  /// Called during a long wait: checks whether the peer has ended; if so, records a failure and
  /// throws.
  void probe(int pe);
  bool poll_all();
  ContextState& state_of(int context) { return contexts_[static_cast<std::size_t>(context)]; }
  void serve();
  void stop_serving();

  TransportSetup setup_;
  Unavailable problem_; ///< its reason is "" if the transport can be used
  Provider provider_;
  std::vector<Device> chosen_; ///< set by use_nics(); if empty, connect() takes the first device
  ImmediateSpace immediates_;
  Failures failures_;
  std::array<ContextState, limits::max_contexts> contexts_;
  /// Declared before memory_, whose memory is registered with the rails.
  std::vector<std::unique_ptr<Rail>> rails_;
  MemoryMap memory_;
  bool native_atomics_ = false;
  std::atomic<std::uint32_t> next_sequence_{0};

  // The service thread, which serves peers while the program does not poll.
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> program_polls_{0};
  std::atomic<int> program_waits_{0}; ///< number of threads in wait(), which poll
  std::thread service_;
};

/// See the declaration.
template <class Done, class Peer>
void LibfabricTransport::wait(Done&& done, const char* step, Peer&& peer) {
  constexpr int iterations_between_polls = 64, spins = 64;
  // After `polling`, the wait sleeps between polls: a software network may need the core, and a
  // short sleep is negligible in a long wait.
  constexpr auto polling = std::chrono::milliseconds(2);
  constexpr auto nap = std::chrono::microseconds(50);
  if (done())
    return;
  std::optional<Deadline> deadline;
  auto until_probe = std::chrono::milliseconds(500);
  Deadline next_probe = Deadline::after(until_probe);
  const Deadline end_of_polling = Deadline::after(polling);
  const CountedIn waiting(program_waits_);
  bool naps = false;
  for (int turn = 1;; ++turn) {
    progress();
    if (done())
      break;
    if (naps || turn % iterations_between_polls == 0) {
      naps = naps || end_of_polling.passed();
      if (!deadline) {
        deadline = Deadline::after(std::chrono::duration<double>(setup_.timeout_s));
        setup_.health->waiting_for_network(peer());
      }
      setup_.health->check();
      if (next_probe.passed()) {
        probe(peer());
        next_probe = Deadline::after(until_probe *= 2);
      }
      if (deadline->passed())
        setup_.health->give_up(step, peer());
    }
    if (naps)
      std::this_thread::sleep_for(nap);
    else if (turn > spins)
      std::this_thread::yield();
  }
  if (deadline)
    setup_.health->waiting_for(-1);
}

template <class Call>
void LibfabricTransport::post(const Path& path, Operation& operation, Call&& call) {
  operation.context = &path.state;
  path.state.endpoints |= 1u << path.rail_index;
  path.state.pending.fetch_add(1, std::memory_order_relaxed);
  if (operation.is_atomic)
    path.state.pending_atomics.fetch_add(1, std::memory_order_relaxed);
  const auto undo = [&] {
    if (operation.is_atomic)
      path.state.pending_atomics.fetch_sub(1, std::memory_order_relaxed);
    path.state.pending.fetch_sub(1, std::memory_order_relaxed);
    path.rail.pool().give(operation);
  };
  const int pe = operation.pe;
  long status = call();
  if (status == -FI_EAGAIN)
    try {
      wait([&] { return (status = call()) != -FI_EAGAIN || failures_.has(pe); }, path.step,
           [&] { return pe; });
    } catch (...) {
      undo();
      throw;
    }
  if (status == 0)
    return;
  undo();
  check_peer(pe);
  throw path.rail.failure(path.step, pe, provider_.library->error_text(status));
}

} // namespace shmemctl::fabric
