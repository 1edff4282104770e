#include "src/runtime/buffers/owner.h"

#include <pthread.h>
#include <system_error>

#include "src/base/error.h"
#include "src/memory/kernel_copy.h"

namespace shmemctl::buffers {

namespace {
constexpr int poll_interval_ms = 100;
}

Owner::Owner(const ControlShape& shape, const char* backing_kind, const JobSecret& secret, int pe,
             std::vector<int> users, BufferPool& pool, ServiceDuties duties)
    : control_(std::make_shared<Control>(shape, backing_kind)),
      service_(secret, pe, std::move(users), pool, *control_, std::move(duties)) {
  const SignalsBlocked blocked; // signals are for the program's threads
  try {
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "buffers");
      while (!stop_.load(std::memory_order_acquire))
        service_.poll(poll_interval_ms);
    });
  } catch (const std::system_error& error) {
    throw Error(ExitCode::unavailable, "the thread for registered buffers", "start", error.what(),
                "raise the limit of processes (ulimit -u)");
  }
}

Owner::~Owner() {
  stop_.store(true, std::memory_order_release);
  service_.wake();
  thread_.join();
}

} // namespace shmemctl::buffers
