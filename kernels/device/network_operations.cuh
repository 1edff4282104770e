// Implementation of network.cuh, which includes this file.
//
// The functions are not inlined: otherwise every kernel that may need them would contain copies of
// all of them.
#pragma once

#include "kernels/device/gpu_memory.cuh"
#include "kernels/device/ibgda_qp.h"
#include "kernels/device/network.cuh"
#include "kernels/device/proxy_client.h"
#include "kernels/device/scope.cuh"

namespace shmemctl::device {

namespace detail {

/// A wait of one thread. It ends after job.timeout_ns by %globaltimer, or once any thread of this
/// PE has reported a problem. Sleeps between polls, so that polling does not slow down the threads
/// that are waited for.
class NetworkWait {
public:
  explicit __device__ NetworkWait(const DeviceJob& job) : job_(job) {}
  __device__ void start() { polls_ = 0; }
  __device__ void stop() {}
  __device__ bool pause() {
    if (++polls_ > polls_without_naps)
      __nanosleep(nap_ns);
    if (polls_ % polls_per_clock_read != 0)
      return true;
    const std::uint64_t now = global_time_ns();
    if (polls_ == polls_per_clock_read)
      begin_ns_ = looked_ns_ = now;
    if (now - begin_ns_ > job_.timeout_ns)
      return false;
    if (now - looked_ns_ < ns_between_reports)
      return true;
    looked_ns_ = now;
    return load_relaxed(&job_.report->state) == WaitReport::none;
  }

private:
  static constexpr std::uint32_t polls_per_clock_read = 32, polls_without_naps = 16, nap_ns = 100;
  /// The report is in host memory: when thousands of threads wait, one read takes 100 us, and
  /// delays the thread whose turn it is.
  static constexpr std::uint64_t ns_between_reports = 20'000'000;
  const DeviceJob& job_;
  std::uint64_t begin_ns_ = 0, looked_ns_ = 0;
  std::uint64_t polls_ = 0;
};

using DeviceProxy = ProxyClient<DeviceAtomics, NetworkWait>;
using DeviceQp = QpClient<GpuMemory, NetworkWait>;

/// Fills the report; only the first failure of this PE is kept. Returns false.
__device__ __noinline__ inline bool report_problem(const DeviceJob& job, int peer,
                                                   const NetworkProblem& problem) {
  WaitReport* const report = job.report;
  if (atomicCAS_system(reinterpret_cast<unsigned long long*>(&report->state), WaitReport::none,
                       WaitReport::being_written) != WaitReport::none)
    return false;
  report->peer = peer;
  report->block = Grid::rank();
  report->expected = problem.expected;
  report->seen = problem.seen;
  report->offset_bytes = problem.offset_bytes;
  report->kind = problem.kind;
  store_release(&report->state, WaitReport::written);
  return false;
}

__device__ inline DevicePath path_to(const DeviceJob& job, int pe) {
  return job.network.path_of_pe ? static_cast<DevicePath>(job.network.path_of_pe[pe])
                                : DevicePath::load_store;
}

/// A thread number that is unique in the grid, modulo 2^32.
__device__ inline std::uint32_t thread_number() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z) +
         static_cast<std::uint32_t>(Grid::rank()) * blockDim.x * blockDim.y * blockDim.z;
}

/// Posts the request, and waits for its result if `old` is not nullptr.
__device__ __noinline__ inline bool by_proxy(const DeviceJob& job, const ProxyRequest& request,
                                             std::uint64_t* old) {
  NetworkWait wait(job);
  DeviceProxy proxy(job.network, thread_number(), wait);
  return (old ? proxy.ask(request, *old) : proxy.post(request)) ||
         report_problem(job, request.pe, proxy.problem());
}

__device__ inline ProxyRequest request_to(ProxyOp op, NetworkAddress place,
                                          std::uint64_t size_bytes, int pe) {
  ProxyRequest request;
  request.op = op;
  request.region = static_cast<std::uint8_t>(place.region);
  request.pe = pe;
  request.offset_bytes = place.offset_bytes;
  request.size_bytes = size_bytes;
  return request;
}

__device__ inline DeviceQp::Address qp_address_of(NetworkAddress place) {
  return {static_cast<std::uint32_t>(place.region), place.offset_bytes};
}

/// Number of the caller, for qp_of(): its warp's if qp_per_warp is set, else its block's.
__device__ inline std::uint32_t qp_caller(const DeviceJob& job) {
  constexpr std::uint32_t warp_threads = 32;
  return job.network.qp_per_warp != 0 ? thread_number() / warp_threads
                                      : static_cast<std::uint32_t>(Grid::rank());
}

/// Calls `operation(queue)` with QP `number` to that PE.
template <class Operation>
__device__ inline bool on_qp(const DeviceJob& job, int pe, std::uint32_t number,
                             const Operation& operation) {
  NetworkWait wait(job);
  DeviceQp queue(job.network, static_cast<std::uint32_t>(pe), number, thread_number(), wait);
  return operation(queue) || report_problem(job, pe, queue.problem());
}
/// The same with the caller's QP, or, if `is_atomic`, with its QP for atomics.
template <class Operation>
__device__ inline bool by_ibgda(const DeviceJob& job, int pe, const Operation& operation,
                                bool is_atomic = false) {
  const auto to = static_cast<std::uint32_t>(pe);
  const std::uint32_t caller = qp_caller(job);
  return on_qp(job, pe,
               is_atomic ? atomic_qp_of(job.network, to, caller) : qp_of(job.network, to, caller),
               operation);
}

/// Quiet of the QPs to that PE except one, in two passes: pass 0 rings all doorbells, pass 1 waits.
__device__ inline bool quiet_pass(const DeviceJob& job, int pe, std::uint32_t except, int pass) {
  const std::uint32_t n = qps_to(job.network, static_cast<std::uint32_t>(pe));
  bool ok = true;
  for (std::uint32_t number = 0; ok && number < n; ++number)
    if (number != except)
      ok = on_qp(job, pe, number, [&](DeviceQp& queue) {
        std::uint64_t ticket = 0;
        return !queue.used() || (pass == 0 ? queue.begin_quiet(ticket) : queue.quiet());
      });
  return ok;
}
__device__ inline bool quiet_qps(const DeviceJob& job, int pe, std::uint32_t but) {
  return quiet_pass(job, pe, but, 0) && quiet_pass(job, pe, but, 1);
}

__device__ inline bool no_path(const DeviceJob& job, int pe) {
  return report_problem(job, pe, {WaitKind::no_path, 0, 0, 0});
}

/// Fence of the QPs to that PE. A QP orders its own WQEs; across QPs only completion gives an
/// order.
__device__ inline bool fence_qps(const DeviceJob& job, int pe) {
  const auto to = static_cast<std::uint32_t>(pe);
  if (!has_one_qp(job.network, to))
    return quiet_qps(job, pe, UINT32_MAX);
  const std::uint32_t own = qp_of(job.network, to, qp_caller(job));
  return on_qp(job, pe, own, [](DeviceQp& queue) { return queue.fence(); }) &&
         quiet_qps(job, pe, own);
}

} // namespace detail

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool
network_put(const DeviceJob& job, NetworkAddress target, const void* source,
            std::uint64_t size_bytes, int pe, bool blocking) {
  if (size_bytes == 0)
    return true;
  switch (detail::path_to(job, pe)) {
  case DevicePath::proxy: {
    ProxyRequest request = detail::request_to(ProxyOp::put, target, size_bytes, pe);
    request.local = reinterpret_cast<std::uint64_t>(source);
    std::uint64_t none = 0;
    return detail::by_proxy(job, request, blocking ? &none : nullptr);
  }
  case DevicePath::ibgda:
    return detail::by_ibgda(job, pe, [&](detail::DeviceQp& queue) {
      return queue.put(detail::qp_address_of(target), source, size_bytes, blocking);
    });
  default:
    return detail::no_path(job, pe);
  }
}

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool network_get(const DeviceJob& job, void* target,
                                                                 NetworkAddress source,
                                                                 std::uint64_t size_bytes, int pe,
                                                                 bool blocking) {
  if (size_bytes == 0)
    return true;
  switch (detail::path_to(job, pe)) {
  case DevicePath::proxy: {
    ProxyRequest request = detail::request_to(ProxyOp::get, source, size_bytes, pe);
    request.local = reinterpret_cast<std::uint64_t>(target);
    std::uint64_t none = 0;
    return detail::by_proxy(job, request, blocking ? &none : nullptr);
  }
  case DevicePath::ibgda:
    return detail::by_ibgda(job, pe, [&](detail::DeviceQp& queue) {
      return queue.get(target, detail::qp_address_of(source), size_bytes, blocking);
    });
  default:
    return detail::no_path(job, pe);
  }
}

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool
network_put_value(const DeviceJob& job, NetworkAddress target, std::uint64_t value,
                  unsigned size_bytes, int pe) {
  switch (detail::path_to(job, pe)) {
  case DevicePath::proxy: {
    ProxyRequest request = detail::request_to(ProxyOp::put_value, target, size_bytes, pe);
    request.operand = value;
    return detail::by_proxy(job, request, nullptr);
  }
  case DevicePath::ibgda:
    return detail::by_ibgda(job, pe, [&](detail::DeviceQp& queue) {
      return queue.put_value(detail::qp_address_of(target), value, size_bytes);
    });
  default:
    return detail::no_path(job, pe);
  }
}

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool network_get_value(const DeviceJob& job,
                                                                       NetworkAddress source,
                                                                       unsigned size_bytes, int pe,
                                                                       std::uint64_t& value) {
  value = 0;
  switch (detail::path_to(job, pe)) {
  case DevicePath::proxy:
    return detail::by_proxy(job, detail::request_to(ProxyOp::get_value, source, size_bytes, pe),
                            &value);
  case DevicePath::ibgda:
    return detail::by_ibgda(job, pe, [&](detail::DeviceQp& queue) {
      return queue.get_value(detail::qp_address_of(source), size_bytes, value);
    });
  default:
    return detail::no_path(job, pe);
  }
}

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool
network_atomic(const DeviceJob& job, NetworkAddress target, NetworkAtomic op, unsigned size_bytes,
               std::uint64_t operand, std::uint64_t compare, int pe, std::uint64_t* old) {
  switch (detail::path_to(job, pe)) {
  case DevicePath::proxy: {
    ProxyRequest request = detail::request_to(ProxyOp::atomic, target, size_bytes, pe);
    request.detail = static_cast<std::uint8_t>(op);
    request.operand = operand;
    request.compare = compare;
    return detail::by_proxy(job, request, old);
  }
  case DevicePath::ibgda:
    return detail::by_ibgda(
        job, pe,
        [&](detail::DeviceQp& queue) {
          return queue.atomic(detail::qp_address_of(target), op,
                              static_cast<std::uint8_t>(size_bytes), operand, compare, old);
        },
        true);
  default:
    return detail::no_path(job, pe);
  }
}

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool
network_put_signal(const DeviceJob& job, NetworkAddress target, const void* source,
                   std::uint64_t size_bytes, NetworkAddress signal, std::uint64_t value, bool add,
                   int pe, bool blocking) {
  switch (detail::path_to(job, pe)) {
  case DevicePath::proxy: {
    ProxyRequest request = detail::request_to(ProxyOp::put_signal, target, size_bytes, pe);
    request.detail = signal_detail(static_cast<std::uint8_t>(signal.region), add);
    request.local = reinterpret_cast<std::uint64_t>(source);
    request.operand = value;
    request.compare = signal.offset_bytes;
    std::uint64_t none = 0;
    return detail::by_proxy(job, request, blocking ? &none : nullptr);
  }
  case DevicePath::ibgda:
    return detail::by_ibgda(
        job, pe,
        [&](detail::DeviceQp& queue) {
          return queue.put_signal(detail::qp_address_of(target), source, size_bytes,
                                  detail::qp_address_of(signal), value, add, blocking);
        },
        add);
  default:
    return detail::no_path(job, pe);
  }
}

__device__ SHMEMCTL_NETWORK_INLINE void network_release() {
  fence_system();
}

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool network_fence(const DeviceJob& job) {
  if (!job.network.path_of_pe)
    return true;
  if (job.network.rings.n_fifos > 0) {
    detail::NetworkWait wait(job);
    detail::DeviceProxy proxy(job.network, detail::thread_number(), wait);
    if (!proxy.fence())
      return detail::report_problem(job, -1, proxy.problem());
  }
  if (!job.network.queues)
    return true;
  bool ok = true;
  for (int pe = 0; ok && pe < job.n_pes; ++pe)
    if (detail::path_to(job, pe) == DevicePath::ibgda)
      ok = detail::fence_qps(job, pe);
  return ok;
}

__device__ __noinline__ SHMEMCTL_NETWORK_INLINE bool network_quiet(const DeviceJob& job) {
  if (!job.network.path_of_pe)
    return true;
  bool ok = true;
  // First ring all doorbells, then wait for all QPs.
  for (int turn = 0; job.network.queues && turn < 2; ++turn)
    for (int pe = 0; ok && pe < job.n_pes; ++pe)
      if (detail::path_to(job, pe) == DevicePath::ibgda)
        ok = detail::quiet_pass(job, pe, UINT32_MAX, turn);
  if (ok && job.network.rings.n_fifos > 0) {
    detail::NetworkWait wait(job);
    detail::DeviceProxy proxy(job.network, detail::thread_number(), wait);
    ok = proxy.quiet() || detail::report_problem(job, -1, proxy.problem());
  }
  return ok;
}

} // namespace shmemctl::device
