// The interface through which a waiting PE learns about failures in its job.
#pragma once

#include <string>

namespace shmemctl {

/// Called by the waits of the bootstraps and the runtime. The base class detects no failures; once
/// addresses are exchanged, the runtime's FailureDetector replaces it. Thread safe.
class JobHealth {
public:
  virtual ~JobHealth() = default;

  /// Throws the job's first failure, on whichever PE it was. One atomic load if there was none.
  virtual void check() const {}

  /// Announces which PE this PE waits for from now on, so that others can follow the chain; -1
  /// means no PE.
  virtual void waiting_for(int peer) noexcept { static_cast<void>(peer); }
  /// Like waiting_for(), for operations that a network or a device completes, without action of the
  /// peer's program. -1 means several peers; waiting_for(-1) ends it.
  virtual void waiting_for_network(int peer) noexcept { waiting_for(peer); }

  /// The deadline of a wait has passed. Throws Error (deadline) that names the PE that is late and
  /// the last phase that it reported, as far as known.
  /// @param step the operation that was waiting, e.g. "barrier"
  /// @param peer the PE that was waited for; -1 if unknown (any)
  [[noreturn]] virtual void give_up(const std::string& step, int peer);

  /// A PE has ended or reports a failure, as seen on a connection to it. The job's first failure is
  /// probably the cause, and the notice of it may still be in transit. Throws that failure if the
  /// notice arrives shortly; otherwise returns, and the caller reports what it has seen. The base
  /// class returns at once.
  /// @param peer the PE; -1 if unknown
  virtual void await_cause(int peer) { static_cast<void>(peer); }
};

} // namespace shmemctl
