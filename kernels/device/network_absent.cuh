// For kernels without network paths: every operation on a PE that is not mapped reports that PE and
// fails.
#pragma once

#include "kernels/device/network.cuh"
#include "kernels/device/wait_report.cuh"

namespace shmemctl::device {

__device__ inline bool network_put(const DeviceJob& job, NetworkAddress, const void*, std::uint64_t,
                                   int pe, bool) {
  report_unreachable(job, pe);
  return false;
}
__device__ inline bool network_get(const DeviceJob& job, void*, NetworkAddress, std::uint64_t,
                                   int pe, bool) {
  report_unreachable(job, pe);
  return false;
}
__device__ inline bool network_put_value(const DeviceJob& job, NetworkAddress, std::uint64_t,
                                         unsigned, int pe) {
  report_unreachable(job, pe);
  return false;
}
__device__ inline bool network_get_value(const DeviceJob& job, NetworkAddress, unsigned, int pe,
                                         std::uint64_t& value) {
  value = 0;
  report_unreachable(job, pe);
  return false;
}
__device__ inline bool network_atomic(const DeviceJob& job, NetworkAddress, NetworkAtomic, unsigned,
                                      std::uint64_t, std::uint64_t, int pe, std::uint64_t*) {
  report_unreachable(job, pe);
  return false;
}
__device__ inline bool network_put_signal(const DeviceJob& job, NetworkAddress, const void*,
                                          std::uint64_t, NetworkAddress, std::uint64_t, bool,
                                          int pe, bool) {
  report_unreachable(job, pe);
  return false;
}
__device__ inline void network_release() {}
__device__ inline bool network_fence(const DeviceJob&) {
  return true;
}
__device__ inline bool network_quiet(const DeviceJob&) {
  return true;
}

} // namespace shmemctl::device
