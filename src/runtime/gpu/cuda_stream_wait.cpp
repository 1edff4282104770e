#include "src/runtime/gpu/cuda_stream_wait.h"

#include <chrono>

#include "src/base/deadline.h"
#include "src/base/wait.h"

namespace shmemctl {

bool wait_for_stream(const cuda::Device& device, CUstream stream, const Deadline& deadline,
                     const std::function<void()>& on_check, const Where& where) {
  // Small kernels end within microseconds, so there is no yield before 256 queries.
  constexpr BackoffPolicy policy{.spins = 256,
                                 .relaxes = false,
                                 .yields = 20'000,
                                 .first_sleep = std::chrono::microseconds(5),
                                 .yields_per_check = 256};
  const cuda::Current current(device);
  Backoff backoff(policy);
  for (;;) {
    const CUresult state = device.call().stream_query(stream);
    if (state == CUDA_SUCCESS)
      return true;
    if (state != CUDA_ERROR_NOT_READY)
      device.require(state, "complete the work of a stream", where);
    if (!backoff.pause())
      continue;
    on_check();
    if (deadline.passed())
      return false;
  }
}

Error timeout_error(const cuda::Device& device, const std::string& subject,
                    const std::string& attempted, const std::string& message, const Where& where) {
  const cuda::DriverReport driver_report = device.driver_report();
  return Error(ExitCode::deadline, subject, attempted,
               message + (driver_report.words.empty() ? "" : "; " + driver_report.words),
               driver_report.fix.empty()
                   ? "check nvidia-smi, and dmesg for Xid errors; if it only needs more time, " +
                         raise_timeout()
                   : driver_report.fix,
               where);
}

} // namespace shmemctl
