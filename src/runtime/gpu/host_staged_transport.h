// Forwards requests of kernels that name local memory of any kind to a transport that reaches host
// memory only.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "src/runtime/gpu/kernel_memory.h"
#include "transports/forwarding_transport.h"

namespace shmemctl {

/// Memory of this PE that CPUs and NICs reach.
struct HostRange {
  const void* base = nullptr;
  std::size_t size_bytes = 0;
};

/// Which of this PE's memory transports reach. Thread safe.
class HostRanges {
public:
  explicit HostRanges(std::vector<HostRange> ranges) { set(std::move(ranges)); }
  void set(std::vector<HostRange> ranges);
  bool hold(const void* address, std::size_t size_bytes) const;

private:
  std::mutex mutex_;
  /// All earlier tables as well: other threads may be reading them.
  std::deque<std::vector<HostRange>> all_;
  std::atomic<const std::vector<HostRange>*> current_{nullptr};
};

/// Forwards to the transport below; operations whose local memory is outside of the host-
/// reachable ranges are copied through host memory, and block. For the proxy.
class HostStagedTransport final : public ForwardingOperations {
public:
  /// @param below, ranges outlive it
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
