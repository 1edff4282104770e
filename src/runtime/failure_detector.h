// Failure detector: PEs learn within a second that another PE has failed, and which one.
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

/// What is known of the job's first failure.
struct Failure {
  int pe = -1;
  std::string host, phase, message, fix;
  ExitCode code = ExitCode::unavailable;
  /// `pe` does not respond: it is stopped, or its host is unreachable. It will not end by itself.
  bool unresponsive = false;
  /// What `pe` itself failed with; nothing if others found out (it was lost, or does not respond)
  /// or a signal ended it. Its code and fix are those above.
  std::optional<Error> error;
};

/// How a PE prints the error that ends the job. Must be thread safe.
using ErrorPrinter = std::function<void(const Error&)>;

/// An error that all PEs have found alike and are about to throw: PE 0 prints it, then all meet in
/// a barrier, for at most 2 s.
///
/// May be called only where every PE calls it, or none: after a collective exchange from whose
/// messages, the same on all PEs, each PE has concluded the same error; not for what a single PE
/// has found, such as a device that it lacks. And only before a failure detector runs: afterwards
/// the detector tells the others, and they might be in another collective operation. If a PE is
/// missing from the barrier nothing is lost but those 2 s: every PE but PE 0 then prints the error
/// itself.
/// @param printer the same on all PEs; empty: every PE prints by itself
/// @return the error; Error::printed() if this PE has printed it, or knows by the barrier that PE 0
///         has
Error printed_once(Bootstrap& bootstrap, const ErrorPrinter& printer, Error error);

/// Whether this PE has to ask the launcher to abort the job, because a process of it will not exit
/// by itself. The first PE that is not the cause does so: mostly PE 0, which writes its report
/// first.
/// @param failure the job's first failure; nullptr: none
bool needs_abort(const std::unique_ptr<Failure>& failure, int pe);

/// What a PE's failure detector reports about its process.
enum class Presence {
  answers, ///< its process runs
  silent,  ///< no response: the process is stopped, or its host hangs
  gone     ///< the process has exited
};

/// Every PE has a thread that holds connections to its neighbours in a binary tree over all PEs. A
/// PE that fails announces it; the death of a PE is detected by its neighbours when the connection
/// closes without a Goodbye. Both are flooded over the remaining tree; the first failure wins. Any
/// PE can be queried for its state (phase, step, which PE it waits for): give_up() follows that
/// chain, so that a timeout error names the PE that all others wait for, even if that PE is stopped
/// and does not respond.
///
/// If the PEs have an ErrorPrinter, one of them prints the job's failure: PE 0, or PE 1 if it is
/// PE 0 that was lost or does not respond. It notifies the others once it has printed; they wait
/// briefly for this notice, and print the failure themselves if it does not arrive.
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
  /// Returns when the neighbours have been sent what this PE announced (or after 200 ms).
  virtual void await_sent() noexcept = 0;
  /// Tells all others that this PE fails with `error`, or is ended by a signal (`interrupted`);
  /// returns when it was sent to the neighbours (or after 200 ms). False, and of no other effect
  /// than that check() throws from now on, if the job has failed already: then this error is a
  /// consequence, or the second one.
  /// @param phase "" is the one that was entered last
  virtual bool announce(const Error& error, const std::string& phase) noexcept = 0;
  /// After announce() or a thrown failure: waits, for at most 2 s, until a PE has printed what ends
  /// the job.
  /// @param own an error that this PE has and that is no consequence of another one's failure;
  ///            nullptr: none
  /// @return false if the caller must print: nobody has, or what was printed is not `own`
  virtual bool await_printed(const Error* own) noexcept = 0;
  /// The job's first failure: "PE 3 (host a) failed in phase heap: ...".
  virtual std::unique_ptr<Failure> failure() const = 0;
  /// From now on a closing neighbour is no failure (collective: after a barrier).
  virtual void goodbye() noexcept = 0;

  /// From now on the death of a PE other than PE 0 is not a failure of the job; PE 0 decides which
  /// PEs are lost (src/runtime/degraded_job.h). Collective. A PE that fails with an Error still
  /// ends the job.
  virtual void allow_loss() noexcept = 0;
  /// Probes the process of `pe` over a separate connection, for at most `limit_s` seconds. Throws
  /// the job's failure if that becomes known meanwhile. Thread safe.
  virtual Presence presence(int pe, double limit_s) = 0;
  /// The others continue without this PE: its errors are no failure of the job.
  virtual void exclude_self() noexcept = 0;
};

} // namespace shmemctl
