// The failure detector's tree of connections, and the choice of a neighbour's addresses to try.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/socket.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "src/runtime/failure_detector.h"
#include "src/runtime/failure_detector_state.h"
#include "src/runtime/failure_detector_thread.h"
#include "src/runtime/root_cause.h"

namespace shmemctl::failure_detector {

/// The forms of an address of another host that this host can connect to.
using ReachableForms = std::function<std::vector<SocketAddress>(const SocketAddress&)>;

/// The addresses of another PE to try, in the order in which that PE offers them; texts that are
/// not addresses are skipped. Loopback addresses are skipped if the PE is on another machine or in
/// another network namespace. Link-local addresses are tried only if there are no others, through
/// each interface of this host (their scope names an interface of the other host).
/// @param same_network the PE is on this machine, in this network namespace
std::vector<SocketAddress> addresses_to_try(const std::vector<std::string>& offered,
                                            bool same_network,
                                            const ReachableForms& forms = reachable_forms);

/// Whether any of the addresses may be reachable from another machine or network namespace. The
/// result does not depend on this PE's interfaces, so it is the same on every PE.
bool reachable_from_elsewhere(const std::vector<std::string>& offered);

/// The ranks to which `rank` opens connections: its parent in the binary tree over all ranks and
/// its grandparent; PE 2, which has no grandparent, connects to its sibling PE 1 instead. So no
/// single dead or stopped PE disconnects the others: its children are connected to its parent, and
/// the root's children to each other.
std::vector<int> connects_to(int rank, int size);
/// The ranks from which `rank` accepts connections, ascending.
std::vector<int> accepts_from(int rank, int size);
/// All ranks that `rank` has connections with, ascending: at most 8.
std::vector<int> neighbours(int rank, int size);

// The implementation of FailureDetector, for failure_detector.cpp and its tests.

struct Settings {
  bool always_tcp = false;     ///< also when all PEs are on one machine
  double connect_limit_s = 20; ///< for all connections of this PE
  ErrorPrinter printer = {};   ///< FailureDetector::start()
};

/// The listeners of this PE, and the exchange of their addresses.
class Listeners {
public:
  /// Listens on an abstract Unix name, and on the first 5 of the TCP addresses (those that fail are
  /// left out).
  explicit Listeners(const std::vector<SocketAddress>& tcp_addresses);
  /// Collective: exchanges the addresses, chooses Unix or TCP, and closes the listeners of the
  /// other kind. Throws Error (unavailable) on all PEs alike if a PE has no address that others can
  /// reach.
  AddressBook exchange(Bootstrap& bootstrap, const std::vector<std::string>& host_names,
                       const Settings& settings, const Deadline& deadline);
  std::vector<Listener> take() { return std::move(listeners_); }

private:
  std::vector<Listener> listeners_;
};

class TreeFailureDetector final : public FailureDetector {
public:
  TreeFailureDetector(std::unique_ptr<State> state, AddressBook addresses,
                      std::vector<Listener> listeners);
  /// Collective: opens this PE's connections and waits for those of the others. Throws on all PEs
  /// alike.
  void connect(Bootstrap& bootstrap, const Settings& settings, const Deadline& deadline);

  void check() const override { state_->check(); }
  void waiting_for(int peer) noexcept override { state_->set_waiting_for(peer); }
  void waiting_for_network(int peer) noexcept override { state_->set_waiting_for(peer, true); }
  [[noreturn]] void give_up(const std::string& step, int peer) override;
  void phase(const std::string& name) noexcept override;
  void await_sent() noexcept override;
  void await_cause(int peer) override;
  bool announce(const Error& error, const std::string& phase) noexcept override;
  bool await_printed(const Error* own) noexcept override;
  std::unique_ptr<Failure> failure() const override { return state_->failure(); }
  void goodbye() noexcept override;
  void allow_loss() noexcept override { state_->allow_loss(); }
  Presence presence(int pe, double limit_s) override {
    return presence_of(*state_, addresses_, pe, limit_s);
  }
  void exclude_self() noexcept override { state_->exclude_self(); }

  const AddressBook& addresses() const { return addresses_; }

private:
  void connect_to(int peer, const Deadline& deadline);
  /// Publishes the proposed failure and waits until it has been sent.
  void publish_failure();

  std::unique_ptr<State> state_;
  AddressBook addresses_;
  Thread thread_; // declared last: the thread uses the state
};

std::unique_ptr<TreeFailureDetector> start(Bootstrap& bootstrap, const Secret& secret,
                                           const std::vector<SocketAddress>& my_addresses,
                                           std::vector<std::string> host_names,
                                           const Settings& settings, const Deadline& deadline);

} // namespace shmemctl::failure_detector
