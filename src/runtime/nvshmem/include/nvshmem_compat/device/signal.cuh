/* Put with signal, and signals without data. */
#ifndef NVSHMEM_COMPAT_DEVICE_SIGNAL_CUH
#define NVSHMEM_COMPAT_DEVICE_SIGNAL_CUH

#include "nvshmem_compat/device/job.cuh"

#ifdef NVSHMEM_COMPAT_DEFINES
namespace shmemctl::nvshmem {

/// The checks of all calls with a signal. Not inlined, because put with signal has many arguments.
inline __device__ __noinline__ bool check_signal(const DeviceJob& job, DeviceCall call,
                                                 const void* dest, std::size_t size_bytes,
                                                 const std::uint64_t* sig_addr, int sig_op,
                                                 int pe) {
  if (sig_op != NVSHMEM_SIGNAL_SET && sig_op != NVSHMEM_SIGNAL_ADD)
    return device::report_no_such_value(job, call, DeviceArgument::operation, sig_op);
  return device::check_transfer(job, call, DeviceArgument::dest, dest, size_bytes, pe) &&
         device::check_word(job, call, DeviceArgument::signal_address, sig_addr, sizeof *sig_addr,
                            pe);
}

/// Checks a put with signal. Called by all threads of the scope.
template <class Scope>
__device__ inline bool check_put_signal(const DeviceJob& job, DeviceCall call, const void* dest,
                                        const void* source, std::size_t size_bytes,
                                        const std::uint64_t* sig_addr, int sig_op, int pe) {
  if (!check_signal(job, call, dest, size_bytes, sig_addr, sig_op, pe))
    return false;
  if (Scope::rank() == 0)
    device::check_put(job, call, dest, source, size_bytes, pe);
  Scope::converge();
  return true;
}

__device__ inline SignalOp to_signal_op(int sig_op) {
  return sig_op == NVSHMEM_SIGNAL_ADD ? SignalOp::add : SignalOp::set;
}

template <class Scope>
__device__ inline void put_signal(void* dest, const void* source, std::size_t size_bytes,
                                  std::uint64_t* sig_addr, std::uint64_t signal, int sig_op,
                                  int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !check_put_signal<Scope>(job, DeviceCall::put_signal, dest, source,
                                                   size_bytes, sig_addr, sig_op, pe))
    return;
  device::put_signal<Scope>(job, dest, source, size_bytes, sig_addr, signal, pe,
                            to_signal_op(sig_op));
}
template <class Scope>
__device__ inline void put_signal_nbi(void* dest, const void* source, std::size_t size_bytes,
                                      std::uint64_t* sig_addr, std::uint64_t signal, int sig_op,
                                      int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 && !check_put_signal<Scope>(job, DeviceCall::put_signal_nbi, dest, source,
                                                   size_bytes, sig_addr, sig_op, pe))
    return;
  Scope::sync(); // as in put_nbi(); device::put_signal_nbi() synchronises after the data anyway
  device::put_signal_nbi<Scope>(job, dest, source, size_bytes, sig_addr, signal, pe,
                                to_signal_op(sig_op));
}

__device__ inline void signal_op(std::uint64_t* sig_addr, std::uint64_t signal, int sig_op,
                                 int pe) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 &&
      !check_signal(job, DeviceCall::signal_op, nullptr, 0, sig_addr, sig_op, pe))
    return;
  if (sig_op == NVSHMEM_SIGNAL_ADD)
    device::signal_add(job, sig_addr, signal, pe);
  else
    device::signal_set(job, sig_addr, signal, pe);
}

__device__ inline std::uint64_t signal_fetch(const std::uint64_t* sig_addr) {
  const DeviceJob& job = this_job();
  if (job.checked != 0 &&
      !device::check_words(job, DeviceCall::signal_fetch, DeviceArgument::signal_address, sig_addr,
                           sizeof *sig_addr, 1))
    return 0;
  const std::uint64_t value = device::signal_fetch(sig_addr);
  if (job.checked != 0)
    device::count_completion(job);
  return value;
}

} // namespace shmemctl::nvshmem
#endif

#define NVSHMEM_COMPAT_PUT_SIGNAL(LINKAGE, SCOPE, PREFIX, SUFFIX, NAME, CALL, T, bytes)            \
  LINKAGE void nvshmem##PREFIX##_##NAME##SUFFIX(T* dest, const T* source, size_t nelems,           \
                                                uint64_t* sig_addr, uint64_t signal, int sig_op,   \
                                                int pe)                                            \
      NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::CALL<shmemctl::nvshmem::SCOPE>(                       \
                              dest, source, nelems * (bytes), sig_addr, signal, sig_op, pe););

#define NVSHMEM_COMPAT_X(T, N)                                                                     \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_PUT_SIGNAL, N##_put_signal, put_signal, T, sizeof(T))       \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_PUT_SIGNAL, N##_put_signal_nbi, put_signal_nbi, T, sizeof(T))
NVSHMEM_COMPAT_RMA_TYPES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
#define NVSHMEM_COMPAT_X(N, bytes)                                                                 \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_PUT_SIGNAL, put##N##_signal, put_signal, void, bytes)       \
  NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_PUT_SIGNAL, put##N##_signal_nbi, put_signal_nbi, void, bytes)
NVSHMEM_COMPAT_SIZES(NVSHMEM_COMPAT_X)
#undef NVSHMEM_COMPAT_X
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_PUT_SIGNAL, putmem_signal, put_signal, void, 1)
NVSHMEM_COMPAT_SCOPES(NVSHMEM_COMPAT_PUT_SIGNAL, putmem_signal_nbi, put_signal_nbi, void, 1)
#undef NVSHMEM_COMPAT_PUT_SIGNAL

NVSHMEM_COMPAT_SHARED void nvshmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op,
                                              int pe)
    NVSHMEM_COMPAT_BODY(shmemctl::nvshmem::signal_op(sig_addr, signal, sig_op, pe););
NVSHMEM_COMPAT_SHARED uint64_t nvshmem_signal_fetch(uint64_t* sig_addr)
    NVSHMEM_COMPAT_BODY(return shmemctl::nvshmem::signal_fetch(sig_addr););

#endif
