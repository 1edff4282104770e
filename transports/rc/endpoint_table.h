// The QPs of one QP set.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace shmemctl::rc {

/// Which peer and which ports a QP connects. Endpoints derive from it.
struct EndpointPath {
  int pe = 0;
  std::size_t path = 0;      ///< number among the paths to this peer
  std::size_t port = 0;      ///< port of this PE
  std::size_t peer_port = 0; ///< port of the peer
  bool active = false; ///< whether it is in its QP set's list of endpoints with work in flight
};

/// Finds endpoints by number or by peer and path, and lists those that have work in flight. Not
/// thread safe.
/// @tparam Endpoint has a flag `active`, which this table sets
template <class Endpoint>
class EndpointTable {
public:
  explicit EndpointTable(int n_pes) : by_peer_(static_cast<std::size_t>(n_pes)) {}

  /// Adds the next path to that peer. The reference stays valid.
  Endpoint& add(int pe, std::unique_ptr<Endpoint> endpoint) {
    all_.push_back(std::move(endpoint));
    by_peer_[static_cast<std::size_t>(pe)].push_back(all_.back().get());
    return *all_.back();
  }
  std::size_t size() const { return all_.size(); }
  /// Endpoints are numbered in the order in which they were added.
  Endpoint& operator[](std::size_t number) const { return *all_[number]; }
  /// The number of paths to a PE; 0 for a PE that is not connected, or does not exist.
  std::size_t paths_to(int pe) const {
    const auto slot = static_cast<std::size_t>(pe);
    return slot < by_peer_.size() ? by_peer_[slot].size() : 0;
  }
  /// @param path less than paths_to(pe)
  Endpoint& at(int pe, std::size_t path) const { return *to(pe)[path]; }
  /// The endpoints to a PE, by path.
  const std::vector<Endpoint*>& to(int pe) const { return by_peer_[static_cast<std::size_t>(pe)]; }

  /// Endpoints with work in flight, in the order of their activation.
  const std::vector<Endpoint*>& active() const { return active_; }
  void activate(Endpoint& endpoint) {
    if (endpoint.active)
      return;
    endpoint.active = true;
    active_.push_back(&endpoint);
  }
  /// Called when no work is in flight.
  void deactivate_all() {
    for (Endpoint* endpoint : active_)
      endpoint->active = false;
    active_.clear();
  }

private:
  std::vector<std::unique_ptr<Endpoint>> all_;
  std::vector<std::vector<Endpoint*>> by_peer_;
  std::vector<Endpoint*> active_;
};

} // namespace shmemctl::rc
