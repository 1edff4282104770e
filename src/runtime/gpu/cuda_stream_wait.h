// Waits for CUDA streams, with a deadline and checks of the job's health.
#pragma once

#include <functional>
#include <string>

#include "src/base/deadline.h"
#include "src/runtime/cuda/device.h"

namespace shmemctl {

/// Waits until all work in the stream is complete: spins, then yields, then sleeps.
/// @param on_check called at intervals; may throw
/// @param where    the waiting PE, for the Error
/// @return false if the deadline passed
/// Throws Error (unavailable) with the driver's error text if work in the stream has failed.
bool wait_for_stream(const cuda::Device& device, CUstream stream, const Deadline& deadline,
                     const std::function<void()>& on_check, const Where& where = {});

/// The Error (deadline) for a wait that timed out, with the driver's report about the device if
/// there is one.
/// @param subject, attempted, message as in Error
Error timeout_error(const cuda::Device& device, const std::string& subject,
                    const std::string& attempted, const std::string& message, const Where& where);

} // namespace shmemctl
