#include "src/bootstrap/abort_at_end.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "src/base/log.h"

namespace shmemctl {

namespace {

/// The others have learnt of the failure at the same time, and end by themselves meanwhile.
constexpr std::chrono::seconds others_time{1};

struct PendingAbort {
  std::unique_ptr<Bootstrap> bootstrap;
  ExitCode code;
  std::string message;
};

std::mutex pending_mutex;

/// Never destroyed: exit handlers run beside the destructors of static objects.
PendingAbort*& pending() {
  static PendingAbort* job = nullptr;
  return job;
}

void abort_pending() {
  PendingAbort* job = nullptr;
  {
    const std::lock_guard lock(pending_mutex);
    std::swap(job, pending());
  }
  if (!job)
    return;
  std::this_thread::sleep_for(others_time);
  job->bootstrap->abort(job->code, job->message);
  // The object stays: what its destructor would tell a launcher it has been told.
}

} // namespace

void abort_at_end(std::unique_ptr<Bootstrap> bootstrap, ExitCode code, std::string message) {
  const std::lock_guard lock(pending_mutex);
  static const bool registered = std::atexit(abort_pending) == 0;
  if (pending() || !registered)
    return;
  log(LogLevel::info, "bootstrap",
      "the launcher will be asked to end the job by " + std::string(bootstrap->name()));
  pending() = new PendingAbort{std::move(bootstrap), code, std::move(message)};
}

} // namespace shmemctl
