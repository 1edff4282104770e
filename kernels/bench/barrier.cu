#include "kernels/bench/barrier.cuh"
#include "kernels/bench/launch.cuh"
#include "kernels/bench/launchers.h"

namespace shmemctl::bench::SHMEMCTL_WAYS {

std::string launch_meeting(const KernelLaunch& how, const MeetingArguments& arguments) {
  return arguments.looks ? launch_by_scope<WatchedMeetingBody>(how, arguments)
                         : launch_by_scope<MeetingBody>(how, arguments);
}

} // namespace shmemctl::bench::SHMEMCTL_WAYS
