// Failure detector: PEs learn which PE has failed, within a second if it fails or its process ends.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/job_health.h"
#include "src/base/secret.h"
#include "src/base/socket.h"
#include "src/runtime/bootstrap/bootstrap.h"
#include "src/runtime/identity.h"

namespace shmemctl {

/// What is known about the job's first failure.
struct Failure {
  int pe = -1;
  std::string host, phase, message, fix;
  ExitCode code = ExitCode::unavailable;
  /// `pe` does not respond: it is stopped, or its host is unreachable. It will not end by itself.
  bool unresponsive = false;
  /// The error with which `pe` itself failed; nothing if other PEs detected the failure (`pe` was
  /// lost, or does not respond) or a signal ended it. Its code and fix are the members above.
  std::optional<Error> error;
};

/// How a PE prints the error that ends the job. Must be thread safe.
using ErrorPrinter = std::function<void(const Error&)>;

/// For an error that all PEs have detected in the same way and are about to throw: PE 0 prints it,
/// then all PEs execute a barrier, for at most 2 s.
///
/// May be called only if either every PE calls it or none: after a collective exchange whose
/// messages are the same on all PEs, so that each PE has concluded the same error; not for an error
/// that a single PE has detected, such as a missing device. And only before a failure detector
/// runs: afterwards the detector notifies the others, which may be in another collective operation.
/// If a PE is missing from the barrier, only those 2 s are lost: every PE except PE 0 then prints
/// the error itself.
/// @param printer set on all PEs or on none; empty: every PE prints by itself
/// @return the error; Error::printed() is true if this PE has printed it, or knows from the barrier
///         that PE 0 has
Error printed_once(Bootstrap& bootstrap, const ErrorPrinter& printer, Error error);

/// Whether this PE has to ask the launcher to abort the job, because a process of the job will not
/// exit by itself. The first PE that is not the cause does so: usually PE 0, which writes its
/// report before. If the cause is unknown, every PE does so.
/// @param failure the job's first failure; nullptr: none
bool needs_abort(const std::unique_ptr<Failure>& failure, int pe);

/// The state of a PE's process, as a probe of its failure detector shows it.
enum class Presence {
  answers, ///< the PE's process runs and answers
  silent,  ///< no response: the process is stopped, or its host hangs
  gone     ///< the process has exited
};

/// Every PE has a thread that holds connections to its neighbours in a binary tree over all PEs. A
/// PE that fails announces it; the death of a PE is detected by its neighbours when the connection
/// closes without a Goodbye. Both are flooded over the remaining tree; the first failure wins. Any
/// PE can be queried for its state (phase, step, which PE it waits for): give_up() follows the
/// chain of waits, so that a timeout error names the PE that all others wait for, even if that PE
/// is stopped and does not respond.
///
/// If the PEs have an ErrorPrinter, one PE prints the job's failure: PE 0, or PE 1 if PE 0 was
/// lost, does not respond or was ended by a signal. It then notifies the others, which wait briefly
/// for this notice, and print the failure themselves if it does not arrive.
class FailureDetector : public JobHealth {
public:
  /// Collective: exchanges addresses by one allgather and builds the tree.
  /// @param secret of the job: connections without it are dropped
  /// @param printer for await_printed(), the same on all PEs; empty: every PE prints by itself
  static std::unique_ptr<FailureDetector>
  start(Bootstrap& bootstrap, const Secret& secret, const std::vector<SocketAddress>& my_addresses,
        std::vector<std::string> host_names, const Deadline& deadline, ErrorPrinter printer = {});

  void check() const override = 0;
  void waiting_for(int peer) noexcept override = 0;
  void waiting_for_network(int peer) noexcept override = 0;
  [[noreturn]] void give_up(const std::string& step, int peer) override = 0;
  void await_cause(int peer) override = 0;

  /// Sets the current phase; other PEs may query it, and neighbours are notified of the change.
  virtual void phase(const std::string& name) noexcept = 0;
  /// Returns when everything that this PE announced has been sent to the neighbours (or after
  /// 200 ms).
  virtual void await_sent() noexcept = 0;
  /// Announces to all other PEs that this PE fails with `error`, or is ended by a signal (code
  /// `interrupted`); returns when the announcement was sent to the neighbours (or after 200 ms).
  /// Returns false if the job has failed before: this error is then a consequence or a second
  /// failure, it is not announced, and check() throws the first failure from now on.
  /// @param phase in which it failed; "": the phase that was entered last
  virtual bool announce(const Error& error, const std::string& phase) noexcept = 0;
  /// After announce() or a thrown failure: waits, for at most 2 s, until a PE has printed the error
  /// that ends the job.
  /// @param own an error of this PE that is not a consequence of another PE's failure; nullptr if
  ///            there is none
  /// @return false if the caller must print, because no PE has printed, or printed an error other
  ///         than `own`
  virtual bool await_printed(const Error* own) noexcept = 0;
  /// The job's first failure ("PE 3 (host a) failed in phase heap: ..."); nullptr: none.
  virtual std::unique_ptr<Failure> failure() const = 0;
  /// From now on it is no failure if a neighbour closes its connection. Collective; call it after a
  /// barrier.
  virtual void goodbye() noexcept = 0;

  /// From now on the death of a PE other than PE 0 is not a failure of the job; PE 0 decides which
  /// PEs are lost (src/runtime/degraded_job.h). Collective. A PE that fails with an Error still
  /// ends the job.
  virtual void allow_loss() noexcept = 0;
  /// Probes the process of `pe` over a separate connection, for at most `limit_s` seconds. Throws
  /// the job's failure if one becomes known meanwhile. Thread safe.
  virtual Presence presence(int pe, double limit_s) = 0;
  /// The others continue without this PE: from now on its errors are not failures of the job.
  virtual void exclude_self() noexcept = 0;
};

} // namespace shmemctl
