// How PEs learn within a second that another one has failed, and who it was.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/job_health.h"
#include "src/base/secret.h"
#include "src/base/socket.h"
#include "src/bootstrap/bootstrap.h"
#include "src/runtime/identity.h"

namespace shmemctl {

/// What is known of the job's first failure.
struct Failure {
  int pe = -1;
  std::string host, phase, message, fix;
  ExitCode code = ExitCode::unavailable;
  /// `pe` does not answer: it is stopped, or its host is out of reach. It will not end by itself.
  bool unresponsive = false;
};

/// Whether this PE has to ask the launcher to end the job, since one of its processes will not end
/// by itself. The first PE that is not to blame does: mostly PE 0, which writes the report before.
/// @param failure the job's first; nullptr is none
bool needs_abort(const std::unique_ptr<Failure>& failure, int pe);

/// What another PE's lifeline says of it.
enum class Presence {
  answers, ///< its process runs
  silent,  ///< nothing comes back: it is stopped, or its host hangs
  gone     ///< nobody is there any more
};

/// Every PE has a thread that holds connections to its neighbours in a binary tree over all PEs.
/// A PE that fails says so (announce); one that dies is noticed by its neighbours when the
/// connection ends without a goodbye. Either is flooded over what is left of the tree; the first
/// failure wins. Any PE can be asked what it does (phase, step, whom it waits for): give_up()
/// follows that chain, so that the message of a deadline names the PE that everybody waits for,
/// also if it is stopped and does not answer.
class Lifeline : public JobHealth {
public:
  /// Collective: exchanges addresses by one allgather and builds the tree.
  /// @param secret of the job: connections without it are dropped
  static std::unique_ptr<Lifeline> start(Bootstrap& bootstrap, const Secret& secret,
                                         const std::vector<SocketAddress>& my_addresses,
                                         std::vector<std::string> host_names,
                                         const Deadline& deadline);

  void check() const override = 0;
  void waiting_for(int peer) noexcept override = 0;
  void waiting_for_network(int peer) noexcept override = 0;
  [[noreturn]] void give_up(const std::string& step, int peer) override = 0;
  void await_cause(int peer) override = 0;

  /// What this PE does now; others may ask, and neighbours are told of a change.
  virtual void phase(const std::string& name) noexcept = 0;
  /// Tells all others that this PE fails with `error`, or is ended by a signal (`interrupted`);
  /// returns when it was sent to the neighbours (or after 200 ms). False, and of no other effect
  /// than that check() throws from now on, if the job has failed already: then this error is a
  /// consequence, or the second one.
  /// @param phase "" is the one that was entered last
  virtual bool announce(const Error& error, const std::string& phase) noexcept = 0;
  /// The job's first failure: "PE 3 (host a) failed in phase heap: ...".
  virtual std::unique_ptr<Failure> failure() const = 0;
  /// From now on a closing neighbour is no failure (collective: after a barrier).
  virtual void goodbye() noexcept = 0;

  /// From now on a PE that dies is no failure of the job, but for PE 0, which says who is lost
  /// (src/runtime/survivors.h). Collective. A PE that fails with an Error still ends all.
  virtual void allow_loss() noexcept = 0;
  /// Whether the process of `pe` is there; asked over a connection of its own, for `limit_s` at
  /// most. Throws the job's failure if that becomes known. Thread safe.
  virtual Presence presence(int pe, double limit_s) = 0;
  /// The others go on without this PE: what it fails with is no failure of the job.
  virtual void step_aside() noexcept = 0;
};

} // namespace shmemctl
