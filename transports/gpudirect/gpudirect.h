// Regions of GPU memory over NICs that access it (GPUDirect RDMA). Operations that must be atomic
// with kernels are sent as messages to the target's agent: see docs/explanation/staged.md.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "transports/device_memory_user.h"
#include "transports/forwarding_transport.h"
#include "transports/region_table.h"
#include "transports/transport.h"

namespace shmemctl {

struct GpuDirectSettings {
  /// Not owned; its owner connects it and sets its regions.
  Transport* network = nullptr;
  /// Staged transfers, not owned: for atomics, and for memory that no NIC reaches. Its agent
  /// flushes.
  Transport* staged = nullptr;
  /// Whether that local address is memory of a GPU, of the regions or any other.
  std::function<bool(const void*)> is_device_memory;
  std::shared_ptr<const DeviceMemory> memory; ///< the memory of this PE's regions
  std::string description;                    ///< "GPUDirect RDMA by dma-buf over ibrc"
  /// DeviceMemoryUser::signals_device_memory(); else signals are the agents'.
  bool nics_signal = true;
};

/// Puts, gets and signals that are set go through the NIC. Atomics and signals that are added go to
/// the target's agent, which launches a kernel: a NIC's atomics would not be atomic with those of
/// the GPU. Local GPU memory outside of all regions (cudaMalloc) is not registered, and is staged.
/// A NIC and the agent are not ordered with each other: a fence between the two waits for
/// acknowledgements.
class GpuDirectTransport final : public ForwardingOperations {
public:
  explicit GpuDirectTransport(GpuDirectSettings settings);

  const char* name() const override { return "gpudirect"; }
  std::string set_region(const RegionView& region) override;

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
  /// Atomics are executed by GPUs, as all others on these regions.
  bool atomics_coherent_with_cpu() const override { return true; }
  std::string connection(int pe) const override;
  std::vector<NicPair> nics_to(int pe) const override { return settings_.network->nics_to(pe); }
  Transport& for_host_memory() override { return of_host_; }

private:
  enum class Local { host, region, other_gpu };
  /// The same for local memory of known kind: querying the driver would take longer than a small
  /// operation.
  class OfHostMemory final : public ForwardingOperations {
  public:
    // Without the cast, this would be a copy of the whole.
    explicit OfHostMemory(GpuDirectTransport& whole)
        : ForwardingOperations(static_cast<Transport&>(whole)), whole_(whole) {}
    void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
             bool blocking) override {
      whole_.direct(context).put(context, target, source, size_bytes, blocking);
    }
    void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
             bool blocking) override {
      whole_.direct(context).get(context, target, source, size_bytes, blocking);
    }
    void put_signal(int context, const RemoteAddress& target, const void* source,
                    std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                    SignalOp op, bool blocking) override {
      whole_.put_signal_of(Local::host, context, target, source, size_bytes, signal, signal_value,
                           op, blocking);
    }

  private:
    GpuDirectTransport& whole_;
  };

  static constexpr std::size_t n_contexts = 64;
  /// What a context has begun since its last quiet.
  struct Context {
    bool staged = false; ///< something is in flight by the agents
    bool gets = false;   ///< a NIC's, into memory of this GPU
    /// A fence orders that before what follows.
    bool fenced_direct = false, fenced_staged = false;
  };

  Local kind_of(const void* local, std::size_t size_bytes) const;
  void put_signal_of(Local kind, int context, const RemoteAddress& target, const void* source,
                     std::size_t size_bytes, const RemoteAddress& signal,
                     std::uint64_t signal_value, SignalOp op, bool blocking);
  Context& at(int context) { return contexts_[static_cast<std::size_t>(context) % n_contexts]; }
  Transport& direct(int context);
  Transport& staged(int context);
  void quiet_direct(int context);
  void quiet_staged(int context);

  GpuDirectSettings settings_;
  RegionTable regions_;
  std::array<Context, n_contexts> contexts_;
  OfHostMemory of_host_{*this};
};

} // namespace shmemctl
