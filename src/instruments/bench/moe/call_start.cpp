#include "src/instruments/bench/moe/call_start.h"

#include "kernels/moe/call_start.h"
#include "src/base/error.h"
#include "src/instruments/bench/job_memory.h"
#include "src/runtime/teams.h"

namespace shmemctl::moe {

namespace {

/// Twice the largest L2 cache of any GPU (126 MB). DeepEP's tests write the same amount.
constexpr std::size_t flushed_bytes = std::size_t{256} << 20;
/// Several times as long as the host needs to read the waits of the previous call and to launch a
/// call's kernels (about 40 us).
constexpr std::uint64_t delay_ns = 200'000;

} // namespace

CallStarter::CallStarter(PeGpu& gpu, const CallStart& wanted) : gpu_(gpu), wanted_(wanted) {
  if (wanted.flush_l2)
    scratch_ = bench::allocate_on_gpu(gpu, flushed_bytes, "flushing the L2", "omit --flush-l2");
}

void CallStarter::flush() {
  if (!wanted_.flush_l2)
    return;
  launched(launch_flush(scratch_, flushed_bytes, gpu_.stream()));
  gpu_.wait(gpu_.stream(), "flush of the L2 cache");
}

void CallStarter::align() {
  if (!wanted_.kernels_only)
    return;
  if (!job_) // the constructor of Job reads device memory
    job_.emplace(gpu_.job());
  launched(launch_delay(delay_ns, gpu_.stream()));
  on_stream::barrier(*job_, team_world, gpu_.stream());
}

void CallStarter::close() {
  if (scratch_)
    gpu_.free(scratch_);
  scratch_ = nullptr;
}

void CallStarter::launched(const std::string& failure) const {
  if (!failure.empty())
    throw Error(ExitCode::unavailable, "kernel before a timed call", "launch", failure,
                "run shmemctl doctor to check the driver");
}

} // namespace shmemctl::moe
