// What a failed work request becomes: an error that names who, where, what and why.
#pragma once

#include "transports/ibrc/endpoint.h"
#include "transports/ibrc/job_view.h"

namespace shmemctl::ibrc {

/// A completion with another status than success.
Error completion_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                         const ibv_wc& completion);
/// A work request that the device did not take.
Error post_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                   int error_number);

} // namespace shmemctl::ibrc
