// The Error of a failed work request. It names PE, host, device, port, operation and cause.
#pragma once

#include "transports/ibrc/endpoint.h"
#include "transports/ibrc/job_view.h"

namespace shmemctl::ibrc {

/// The error of a completion whose status is not success.
Error completion_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                         const ibv_wc& completion);
/// The error of a work request that the device refused.
Error post_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                   int error_number);
/// The error of an atomic by message that the peer did not execute.
/// @param why the peer's reason
Error message_refused(const JobView& job, const Endpoint& endpoint, int region,
                      std::uint64_t offset_bytes, const std::string& why);

} // namespace shmemctl::ibrc
