// Regions of GPU memory over NICs that read and write it themselves (GPUDirect RDMA). What has to
// be atomic with kernels goes as a message to the target's agent: see docs/explanation/staged.md.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "transports/device_memory.h"
#include "transports/region_table.h"
#include "transports/transport.h"

namespace shmemctl {

struct GpuDirectSettings {
  /// Not owned: connected, and told of the regions by who has it.
  Transport* network = nullptr;
  /// Staged transfers, not owned: atomics, and what no NIC reaches. Its agent flushes.
  Transport* staged = nullptr;
  /// Whether that local address is memory of a GPU, of the regions or any other.
  std::function<bool(const void*)> is_device_memory;
  std::shared_ptr<const DeviceMemory> memory; ///< of this PE's regions
  std::string way;                            ///< "GPUDirect RDMA by dma-buf over ibrc"
  /// DeviceMemoryUser::signals_device_memory(); else signals are the agents'.
  bool nics_signal = true;
};

/// Puts, gets and signals that are set are the NICs'. Atomics and signals that are added are those
/// of the target's agent, by a kernel: a NIC's would not be atomic with those of the GPU. Local
/// memory of a GPU that lies in no region (cudaMalloc) is registered nowhere, and is staged.
/// A NIC and the agent know nothing of each other: between the two a fence waits for
/// acknowledgements.
class GpuDirectTransport final : public Transport {
public:
  explicit GpuDirectTransport(GpuDirectSettings settings);

  const char* name() const override { return "gpudirect"; }
  std::string local_info() override { return {}; }
  Reach reach(const PeerPlace&, const PeerPlace&) const override { return {}; }
  void connect(const std::vector<PeerPlace>&, Exchange&, const Deadline&) override {}
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
  /// The agents' are made by GPUs, as all others on these regions.
  bool atomics_meet_cpu() const override { return true; }
  std::string connection(int pe) const override;
  Transport& for_host_memory() override { return of_host_; }

private:
  enum class Local { host, region, other_gpu };
  /// The same for local memory that needs no look at what it is, which takes the driver longer than
  /// the rest of a small operation.
  class OfHostMemory final : public Transport {
  public:
    explicit OfHostMemory(GpuDirectTransport& whole) : whole_(whole) {}
    const char* name() const override { return whole_.name(); }
    std::string local_info() override { return {}; }
    Reach reach(const PeerPlace&, const PeerPlace&) const override { return {}; }
    void connect(const std::vector<PeerPlace>&, Exchange&, const Deadline&) override {}
    std::string set_region(const RegionView&) override { return {}; }
    void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
             bool blocking) override {
      whole_.direct(context).put(context, target, source, size_bytes, blocking);
    }
    void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
             bool blocking) override {
      whole_.direct(context).get(context, target, source, size_bytes, blocking);
    }
    std::uint64_t atomic(int context, const RemoteAddress& target,
                         const AtomicRequest& request) override {
      return whole_.atomic(context, target, request);
    }
    void post_atomic(int context, const RemoteAddress& target,
                     const AtomicRequest& request) override {
      whole_.post_atomic(context, target, request);
    }
    void put_signal(int context, const RemoteAddress& target, const void* source,
                    std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                    SignalOp op, bool blocking) override {
      whole_.put_signal_of(Local::host, context, target, source, size_bytes, signal, signal_value,
                           op, blocking);
    }
    void fence(int context) override { whole_.fence(context); }
    void quiet(int context) override { whole_.quiet(context); }

  private:
    GpuDirectTransport& whole_;
  };

  static constexpr std::size_t n_contexts = 64;
  /// What a context has begun since its last quiet.
  struct Context {
    bool staged = false; ///< something is under way by the agents
    bool gets = false;   ///< a NIC's, into memory of this GPU
    /// A fence stands between that and what comes next.
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
