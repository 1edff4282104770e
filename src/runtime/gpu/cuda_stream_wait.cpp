#include "src/runtime/gpu/cuda_stream_wait.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "src/base/timeout_words.h"

namespace shmemctl {

bool wait_for_stream(const cuda::Device& device, CUstream stream, const Deadline& deadline,
                     const std::function<void()>& look, const Where& where) {
  constexpr int looks_apart = 256, yields = 20'000;
  constexpr auto longest_sleep = std::chrono::microseconds(200);
  const cuda::Current current(device);
  auto sleep = std::chrono::microseconds(5);
  for (int count = 1;; ++count) {
    const CUresult state = device.call().stream_query(stream);
    if (state == CUDA_SUCCESS)
      return true;
    if (state != CUDA_ERROR_NOT_READY)
      device.require(state, "finish the work of", where);
    const bool sleeps = count > yields;
    if (sleeps || count % looks_apart == 0) {
      look();
      if (deadline.passed())
        return false;
    }
    if (sleeps) {
      std::this_thread::sleep_for(sleep);
      sleep = std::min(2 * sleep, longest_sleep);
    } else if (count > looks_apart) {
      std::this_thread::yield();
    }
  }
}

Error late_error(const cuda::Device& device, const std::string& subject,
                 const std::string& attempted, const std::string& message, const Where& where) {
  const cuda::Told told = device.told();
  return Error(ExitCode::deadline, subject, attempted,
               message + (told.words.empty() ? "" : "; " + told.words),
               told.fix.empty()
                   ? "check nvidia-smi, and dmesg for Xid errors; if it only needs more time, " +
                         raise_timeout()
                   : told.fix,
               where);
}

} // namespace shmemctl
