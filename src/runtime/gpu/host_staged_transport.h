// Forwards requests of kernels, whose local memory may be of any kind, to a transport that can
// access host memory only.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "src/runtime/gpu/kernel_memory.h"
#include "transports/forwarding_transport.h"

namespace shmemctl {

/// Memory of this PE that CPUs and NICs can access.
struct HostRange {
  const void* base = nullptr;
  std::size_t size_bytes = 0;
};

/// The memory of this PE that transports can access. Thread safe.
class HostRanges {
public:
  explicit HostRanges(std::vector<HostRange> ranges) { set(std::move(ranges)); }
  void set(std::vector<HostRange> ranges);
  bool hold(const void* address, std::size_t size_bytes) const;

private:
  std::mutex mutex_;
  /// All tables so far, because other threads may still read an older one.
  std::deque<std::vector<HostRange>> all_;
  std::atomic<const std::vector<HostRange>*> current_{nullptr};
};

/// Forwards operations to the transport below. If an operation's local memory is outside of the
/// ranges, its data are copied through host memory, and the operation blocks. For the proxy.
class HostStagedTransport final : public ForwardingOperations {
public:
  /// @param below, ranges must outlive this object
  HostStagedTransport(Transport& below, const HostRanges& ranges,
                      std::shared_ptr<KernelMemory> memory)
      : ForwardingOperations(below), ranges_(ranges), memory_(std::move(memory)) {}

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override;
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override;
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override;
  Transport& for_host_memory() override { return below(); }

private:
  const HostRanges& ranges_;
  std::shared_ptr<KernelMemory> memory_;
};

} // namespace shmemctl
