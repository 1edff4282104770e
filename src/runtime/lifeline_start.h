// The Lifeline's implementation, for lifeline.cpp and its tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/runtime/lifeline.h"
#include "src/runtime/lifeline_query.h"
#include "src/runtime/lifeline_state.h"
#include "src/runtime/lifeline_thread.h"

namespace shmemctl::lifeline {

struct Settings {
  bool always_tcp = false;     ///< also when all PEs are on one machine
  double connect_limit_s = 20; ///< for all connections of this PE
};

/// The listeners of this PE, and what it tells the others of itself.
class Listeners {
public:
  /// On an abstract Unix name, and on each of the TCP addresses (those that fail are left out).
  explicit Listeners(const std::vector<SocketAddress>& tcp_addresses);
  /// Collective: exchanges the addresses, decides between Unix and TCP, and closes the other kind.
  /// Throws Error (unavailable) on all PEs alike if some have no address that others can reach.
  AddressBook exchange(Bootstrap& bootstrap, const std::vector<std::string>& host_names,
                       const Settings& settings, const Deadline& deadline);
  std::vector<Listener> take() { return std::move(listeners_); }

private:
  std::vector<Listener> listeners_;
};

class TreeLifeline final : public Lifeline {
public:
  TreeLifeline(std::unique_ptr<State> state, AddressBook addresses,
               std::vector<Listener> listeners);
  /// Collective: opens this PE's connections, waits for the others'. Throws on all PEs alike.
  void connect(Bootstrap& bootstrap, const Settings& settings, const Deadline& deadline);

  void check() const override { state_->check(); }
  void waiting_for(int peer) noexcept override { state_->set_waiting_for(peer); }
  void waiting_for_network(int peer) noexcept override { state_->set_waiting_for(peer, true); }
  [[noreturn]] void give_up(const std::string& step, int peer) override;
  void phase(const std::string& name) noexcept override;
  void await_cause(int peer) override;
  bool announce(const Error& error, const std::string& phase) noexcept override;
  std::unique_ptr<Failure> failure() const override { return state_->failure(); }
  void goodbye() noexcept override;
  void allow_loss() noexcept override { state_->allow_loss(); }
  Presence presence(int pe, double limit_s) override {
    return presence_of(*state_, addresses_, pe, limit_s);
  }
  void step_aside() noexcept override { state_->step_aside(); }

  const AddressBook& addresses() const { return addresses_; }

private:
  void connect_to(int peer, const Deadline& deadline);
  /// Publishes what was proposed and waits until it is on its way.
  void spread_failure();

  std::unique_ptr<State> state_;
  AddressBook addresses_;
  Thread thread_; // last: it uses the state
};

std::unique_ptr<TreeLifeline> start(Bootstrap& bootstrap, const Secret& secret,
                                    const std::vector<SocketAddress>& my_addresses,
                                    std::vector<std::string> host_names, const Settings& settings,
                                    const Deadline& deadline);

} // namespace shmemctl::lifeline
