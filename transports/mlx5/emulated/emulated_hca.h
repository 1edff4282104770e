// An emulated mlx5 HCA ("emulated-mlx5"). It reads the same WQEs, doorbell records and registers,
// and writes the same CQEs, as a real HCA. It executes operations at the peer through an Executor.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transports/mlx5/emulated/emulated_qp.h"
#include "transports/mlx5/emulated/key_table.h"
#include "transports/mlx5/hca.h"

namespace shmemctl::mlx5 {

class EmulatedHca;

/// A registration. With the emulated HCA, lkey and rkey are equal.
class EmulatedMemory final : public HcaMemory {
public:
  EmulatedMemory(EmulatedHca& hca, const KeyWindow& window) : hca_(hca), window_(window) {}
  ~EmulatedMemory() override;
  EmulatedMemory(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(const EmulatedMemory&) = delete;
  std::uint32_t lkey() const override { return window_.key; }
  std::uint32_t rkey() const override { return window_.key; }
  /// The key's memory, as peers need to know it, except that `mapped` is an address of this
  /// process.
  const KeyWindow& window() const { return window_; }

private:
  EmulatedHca& hca_;
  KeyWindow window_;
};

class EmulatedHcaQp final : public HcaQp {
public:
  EmulatedHcaQp(EmulatedHca& hca, const QpOptions& options, std::uint32_t qpn);
  ~EmulatedHcaQp() override;
  EmulatedHcaQp(const EmulatedHcaQp&) = delete;
  EmulatedHcaQp& operator=(const EmulatedHcaQp&) = delete;

  PeerInfo local() const override;
  void connect(const PeerInfo& peer) override;
  const QpView& view() const override { return view_; }
  QpCapabilities abilities() const override { return abilities_; }
  void progress() override;
  std::optional<std::string> fatal_event() override;
  std::string detail(std::uint16_t wqe_counter) const override;

  /// Injects a failure of a future WQE.
  void inject(const InjectedFault& fault);
  std::uint64_t executed() const;

private:
  friend class EmulatedHca;
  struct PageMemory {
    void operator()(void* memory) const;
  };

  EmulatedHca& hca_;
  std::unique_ptr<void, PageMemory> memory_;
  QpView view_{};
  std::unique_ptr<EmulatedQp> device_;
  QpCapabilities abilities_;
  bool connected_ = false;
};

struct EmulatedHcaOptions {
  std::string name = "emulated-mlx5";
  std::uint64_t device_id = 0; ///< number of this HCA in the job; peers see it in PeerInfo
  /// Creates the path to a peer; HcaQp::connect() calls it. Must not be empty.
  std::function<std::shared_ptr<Executor>(const PeerInfo&)> path_to_peer;
  /// Whether the HCA has a thread of its own. Without one, waits of HostQp or callers of poll()
  /// drive it, which is better if there are fewer cores than threads.
  bool has_thread = true;
  /// Whether waiting threads drive the HCA while its own thread sleeps, so that a completion needs
  /// no context switch.
  bool waiters_help = true;
  unsigned batch = 64; ///< maximum number of WQEs of one queue in a row
  EmulatedOrder order;
  // How the thread waits when there is nothing to do: it spins, then yields, then sleeps.
  int idle_spins = 2000;
  int idle_yields = 200;
  std::chrono::microseconds longest_nap{50};
};

/// Its QPs and registrations must be destroyed before it.
class EmulatedHca final : public Hca {
public:
  /// @throw Error (unavailable) if its thread cannot start
  explicit EmulatedHca(EmulatedHcaOptions options);
  ~EmulatedHca() override;
  EmulatedHca(const EmulatedHca&) = delete;
  EmulatedHca& operator=(const EmulatedHca&) = delete;

  const HcaInfo& info() const override { return info_; }
  std::unique_ptr<HcaMemory> register_memory(const MemoryRequest& request) override {
    return register_mapped(request, static_cast<std::byte*>(request.base));
  }
  /// The same for memory whose address in WQEs (`request.base`) differs from its address in this
  /// process (`mapped`).
  std::unique_ptr<HcaMemory> register_mapped(const MemoryRequest& request, std::byte* mapped);
  std::unique_ptr<HcaQp> create_queue(const QpOptions& options) override;

  /// Polls every QP once; returns the number of steps done, 0 if there were none. Thread safe.
  unsigned poll();

  /// Execution is paused while an object of this class exists, so that executors can be changed.
  class Held {
  public:
    explicit Held(EmulatedHca& hca);

  private:
    std::unique_lock<std::mutex> lock_;
  };
  Held hold() { return Held(*this); }

  const EmulatedHcaOptions& options() const { return options_; }

private:
  friend class EmulatedMemory;
  friend class EmulatedHcaQp;

  void run() noexcept;
  void help();
  unsigned serve_all();
  void let_in();

  EmulatedHcaOptions options_;
  HcaInfo info_;
  /// Held by the thread that drives the HCA. Another thread that needs it increments `waiting_`
  /// first, since the driving thread would not release it otherwise.
  std::mutex gate_;
  std::atomic<int> waiting_{0};
  alignas(128) std::atomic<bool> rests_{false}; ///< its thread pauses without holding the gate
  // Guarded by the gate.
  KeyTable keys_;
  std::vector<EmulatedQp*> queues_;
  std::uint32_t next_key_ = 1, next_qpn_ = 0x100;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

} // namespace shmemctl::mlx5
