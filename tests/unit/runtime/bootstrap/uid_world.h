// A job whose PEs are threads of this process and join through a real rendezvous.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl::test {

/// How the PEs of a world differ from a healthy job.
struct UidWorld {
  int n_pes = 2;
  double timeout_s = 60;
  bool unix_sockets = false;
  InterfaceFilter interfaces = {};
  /// What each PE passes to join_uid(); nothing: this PE never joins.
  std::function<std::optional<UidArguments>(int pe, UidArguments)> arguments = {};
};

using PeBody = std::function<void(Bootstrap&, const Deadline&)>;

/// Joins n PEs as threads and runs `body` on each.
/// @returns by PE, the Error that it ended with, if any
inline std::vector<std::optional<Error>> run_uid_world(const UidWorld& world, const PeBody& body) {
  std::unique_ptr<Rendezvous> rendezvous =
      world.unix_sockets ? Rendezvous::start_local(world.timeout_s)
                         : Rendezvous::start(world.interfaces, world.timeout_s);
  const UniqueId id = rendezvous->id();
  const auto count = static_cast<std::size_t>(world.n_pes);
  std::vector<std::optional<Error>> errors(count);
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(world.timeout_s));
  std::vector<std::thread> threads;
  for (std::size_t pe = 0; pe < count; ++pe) {
    std::optional<UidArguments> arguments(std::in_place);
    arguments->rank = static_cast<int>(pe);
    arguments->size = world.n_pes;
    arguments->id = id;
    arguments->interfaces = world.interfaces;
    if (world.arguments)
      arguments = world.arguments(static_cast<int>(pe), std::move(*arguments));
    if (!arguments)
      continue;
    threads.emplace_back([&, pe, mine = std::move(*arguments)]() mutable {
      try {
        const auto bootstrap = join_uid(std::move(mine), deadline);
        body(*bootstrap, deadline);
      } catch (const Error& error) {
        errors[pe] = error;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return errors;
}

} // namespace shmemctl::test
