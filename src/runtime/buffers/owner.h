// What a PE has from its first registration on, so that others can use its buffers.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "src/runtime/buffers/control.h"
#include "src/runtime/buffers/service.h"

namespace shmemctl::buffers {

/// The table of registrations, the service, and the thread that drives it: one owner for all three.
/// The thread is not the proxy's: an answer may take as long as copying a buffer, or wait for pages
/// that another thread is replacing, and the ring would stand still for that long; and the ring's
/// thread may be held up by a transport, while a peer waits for an answer
/// (docs/explanation/buffers.md).
class Owner {
public:
  /// @param users the PEs that may ask, by their number in the table. Throws Error (unavailable)
  ///              without memory, socket or thread.
  Owner(const ControlShape& shape, const char* backing_kind, const JobSecret& secret, int pe,
        std::vector<int> users, BufferPool& pool, ServiceDuties duties = {});
  /// Ends the thread; who asks later finds nobody.
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  const std::shared_ptr<Control>& control() const { return control_; }
  /// Whether that PE is connected: only then can it use a buffer. One that dies no longer is.
  bool connected(std::size_t user) const { return service_.connected(user); }
  /// The users that may have this buffer of a GPU mapped; from now on it knows of none.
  std::set<std::size_t> take_openers(const BufferHandle& handle) {
    return service_.take_openers(handle);
  }

private:
  std::shared_ptr<Control> control_; ///< buffers of this PE that it has opened itself keep it
  Service service_;
  std::atomic<bool> stop_{false};
  std::thread thread_; ///< last: it uses the others
};

} // namespace shmemctl::buffers
