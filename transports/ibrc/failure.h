// The Error of a failed work request: names the PE, the place, the operation and the cause.
#pragma once

#include "transports/ibrc/endpoint.h"
#include "transports/ibrc/job_view.h"

namespace shmemctl::ibrc {

/// A completion with another status than success.
Error completion_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                         const ibv_wc& completion);
/// A work request that the device refused.
Error post_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                   int error_number);
/// A request by message that the peer did not carry out.
/// @param why the peer's reason
Error message_refused(const JobView& job, const Endpoint& endpoint, int region,
                      std::uint64_t offset_bytes, const std::string& why);

} // namespace shmemctl::ibrc
