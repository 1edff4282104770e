// Transport for regions of GPU memory over NICs that access it (GPUDirect RDMA). Operations that
// must be atomic with kernels are sent as messages to the target's agent: see
// docs/explanation/staged.md.
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
  /// The transport that uses the NICs. Not owned; its owner connects it and sets its regions.
  Transport* network = nullptr;
  /// The staged transport, not owned: for atomics, signals that agents write, and local memory that
  /// NICs cannot access. Its agent flushes NICs' writes to GPU memory before it executes a message.
  Transport* staged = nullptr;
  /// Whether the local address is GPU memory, inside or outside of the regions.
  std::function<bool(const void*)> is_device_memory;
  std::shared_ptr<const DeviceMemory> memory; ///< the memory of this PE's regions
  std::string description;                    ///< "GPUDirect RDMA by dma-buf over ibrc"
  /// DeviceMemoryUser::signals_device_memory(); if false, agents write all signals.
  bool nics_signal = true;
};

/// Puts, gets and signals with SignalOp::set go through the NIC; without nics_signal, agents write
/// these signals. Atomics and signals with SignalOp::add go to the target's agent, which launches a
/// kernel, since a NIC's atomics are not atomic with the GPU's. Local GPU memory outside of all
/// regions (cudaMalloc) is not registered, so its transfers are staged. Operations of NIC and agent
/// are not ordered with each other: if a fence separates operations of both, the later one waits
/// until the earlier ones are complete.
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
  /// GPUs execute the atomics, as they execute all other atomics on these regions.
  bool atomics_coherent_with_cpu() const override { return true; }
  std::string connection(int pe) const override;
  std::vector<NicPair> nics_to(int pe) const override { return settings_.network->nics_to(pe); }
  Transport& for_host_memory() override { return of_host_; }

private:
  enum class Local { host, region, other_gpu };
  /// The result of for_host_memory(): the same operations without asking the driver for the kind of
  /// the local memory, which would take longer than a small operation.
  class OfHostMemory final : public ForwardingOperations {
  public:
    // Without the cast, overload resolution would select the copy constructor of the base.
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
  /// Operations that a context has started since its last quiet.
  struct Context {
    bool staged = false; ///< whether agents may have operations in flight
    bool gets = false;   ///< whether the NIC has non-blocking gets into this GPU's memory in flight
    /// Whether a fence orders operations of the NIC (direct) or the agents (staged) before later
    /// ones.
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
