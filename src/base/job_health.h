// What a waiting PE can learn about the rest of its job.
#pragma once

#include <string>

namespace shmemctl {

/// Asked by every wait of the bootstraps and the runtime. The base class knows nothing; once
/// addresses are exchanged, the runtime's FailureDetector takes its place. Thread safe.
class JobHealth {
public:
  virtual ~JobHealth() = default;

  /// Throws the job's first failure, if there was one anywhere. One atomic load if there was none.
  virtual void check() const {}

  /// Says whom this PE waits for from now on, so that others can follow the chain; -1 is nobody.
  virtual void waiting_for(int peer) noexcept { static_cast<void>(peer); }
  /// As waiting_for(), for what a network or a device completes: the peer's program need not do
  /// anything for it. -1 is several peers; waiting_for(-1) ends it.
  virtual void waiting_for_network(int peer) noexcept { waiting_for(peer); }

  /// A wait's deadline has passed. Throws Error (deadline) that names who is behind, and the last
  /// phase that it reported, as far as that can be learnt.
  /// @param step what was being done, e.g. "barrier"
  /// @param peer who was waited for; -1 if that is not known (anyone)
  [[noreturn]] virtual void give_up(const std::string& step, int peer);

  /// A PE has ended, or says that it fails, as seen on a connection to it: the job's first failure
  /// is probably the cause, and its notice may still be under way. Throws that failure if it comes
  /// within a moment; otherwise returns, and the caller says what it has seen. The base class
  /// returns at once.
  /// @param peer the PE; -1 if it is not known which
  virtual void await_cause(int peer) { static_cast<void>(peer); }
};

} // namespace shmemctl
