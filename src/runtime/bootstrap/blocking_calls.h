// Calls into libraries that have no timeout.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/base/deadline.h"
#include "src/base/job_health.h"
#include "src/base/wait.h"

namespace shmemctl {

/// For waits of milliseconds that poll by calling a library: yields, then sleeps, never spins.
inline constexpr BackoffPolicy library_backoff{.spins = 0,
                                               .yields = 200,
                                               .first_sleep = std::chrono::microseconds(20),
                                               .max_sleep = std::chrono::microseconds(1000),
                                               .yields_per_check = 1};

/// A thread that makes blocking calls while its owner waits with a deadline. All calls of one
/// object are made by the same thread, one after another, because some libraries require it.
class BlockingCalls {
public:
  BlockingCalls();
  /// Ends the thread, or detaches it if it hangs in a call.
  ~BlockingCalls();
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  /// Makes the call and waits for it; rethrows what it throws. If the deadline passes or
  /// JobHealth::check() throws, the call is abandoned: its thread stays in it, so the call must own
  /// or share everything that it touches (the library must stay loaded), and no further call is
  /// possible.
  /// @param step name of the call, for the timeout error
  /// @param culprit returns the PE that is waited for; called when the deadline has passed
  void run(const std::string& step, std::function<void()> call, const Deadline& deadline,
           JobHealth& health, const std::function<int()>& culprit = nullptr);
  /// True after run() has abandoned a call.
  bool abandoned() const { return abandoned_; }
  /// After run() has abandoned a call: waits until that call returns; what it throws is dropped.
  /// Returns false if the deadline passes first.
  bool await_abandoned(const Deadline& deadline);

private:
  struct Shared;
  static void serve(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_; ///< also owned by the thread, which may outlive this object
  bool abandoned_ = false;
};

} // namespace shmemctl
