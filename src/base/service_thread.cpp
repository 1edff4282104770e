#include "src/base/service_thread.h"

#include <pthread.h>
#include <system_error>

#include "src/base/error.h"
#include "src/base/process.h"

namespace shmemctl {

std::thread start_service_thread(const std::string& name, std::function<void()> body) {
  const SignalsBlocked blocked(SignalsBlocked::But::faults);
  try {
    std::thread thread(std::move(body));
    ::pthread_setname_np(thread.native_handle(), name.c_str());
    return thread;
  } catch (const std::system_error& error) {
    throw system_error("thread \"" + name + "\"", "start", error.code().value(),
                       "raise the limit of processes (ulimit -u, or the container's pids limit)");
  }
}

} // namespace shmemctl
