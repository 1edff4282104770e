#include "src/runtime/buffers/owner.h"

#include "src/base/service_thread.h"

namespace shmemctl::buffers {

namespace {
constexpr int poll_interval_ms = 100;
}

Owner::Owner(const ControlShape& shape, const char* backing_kind, const JobSecret& secret, int pe,
             std::vector<int> users, BufferPool& pool, ServiceDuties duties)
    : control_(std::make_shared<Control>(shape, backing_kind)),
      service_(secret, pe, std::move(users), pool, *control_, std::move(duties)) {
  thread_ = start_service_thread("buffers", [this] {
    while (!stop_.load(std::memory_order_acquire))
      service_.poll(poll_interval_ms);
  });
}

Owner::~Owner() {
  stop_.store(true, std::memory_order_release);
  service_.wake();
  thread_.join();
}

} // namespace shmemctl::buffers
