// Calls into libraries that cannot be told when to stop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/base/deadline.h"
#include "src/base/job_health.h"

namespace shmemctl {

/// A thread that makes blocking calls while its owner waits with a deadline. All calls of one
/// object are made by the same thread, one after another: some libraries want that.
class BlockingCalls {
public:
  BlockingCalls();
  /// Ends the thread, or leaves it alone if it hangs in a call.
  ~BlockingCalls();
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  /// Makes the call and waits for it; rethrows what it throws. Once the deadline has passed or
  /// JobHealth::check() throws, the call is abandoned: its thread stays in it, so the call must own
  /// or share everything that it touches (the library must stay loaded), and no other call is
  /// possible.
  /// @param step what is being done, for JobHealth::give_up()
  /// @param culprit tells which PE is waited for; asked when the deadline has passed
  void run(const std::string& step, std::function<void()> call, const Deadline& deadline,
           JobHealth& health, const std::function<int()>& culprit = nullptr);
  /// True after run() left a call behind.
  bool abandoned() const { return abandoned_; }

private:
  struct Shared;
  static void serve(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_; ///< also owned by the thread, which may outlive this object
  bool abandoned_ = false;
};

} // namespace shmemctl
