// Waits for streams that have a deadline and look at the job.
#pragma once

#include <functional>
#include <string>

#include "src/base/deadline.h"
#include "src/cuda/device.h"

namespace shmemctl {

/// Until all that was put into the stream is done: spins, then yields, then sleeps.
/// @param look  called now and then; may throw
/// @param where who waits, for the Error
/// @return false if the deadline passed
/// Throws Error (unavailable) with the driver's words if what is in the stream has failed.
bool wait_for_stream(const cuda::Device& device, CUstream stream, const Deadline& deadline,
                     const std::function<void()>& look, const Where& where = {});

/// What to throw then: Error (deadline) with what else the driver told of the device.
/// @param subject, attempted, message as in Error; `message` may say more than that it is late
Error late_error(const cuda::Device& device, const std::string& subject,
                 const std::string& attempted, const std::string& message, const Where& where);

} // namespace shmemctl
