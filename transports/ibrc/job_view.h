// What all parts of one ibrc transport know of the job and of this PE's NICs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/job_health.h"
#include "transports/verbs/async_events.h"
#include "transports/verbs/device.h"
#include "transports/verbs/shared_receives.h"

namespace shmemctl::ibrc {

/// A device that is used, by one or more of its ports.
struct UsedDevice {
  std::unique_ptr<verbs::Device> device;
  std::unique_ptr<verbs::AsyncEvents> events;
  /// Where messages arrive; nullptr unless atomics go by message.
  std::unique_ptr<verbs::SharedReceives> receives;
  verbs::ReceivePlace receive_place() const {
    return receives ? receives->place() : verbs::ReceivePlace{};
  }
};

/// A port of this PE, with its traffic.
struct Nic {
  std::size_t device_index = 0; ///< in JobView::devices
  verbs::Port port;
  std::vector<verbs::GidEntry> addresses; ///< candidates, best first
  std::atomic<std::uint64_t> put_bytes{0}, get_bytes{0}, operations{0};
  std::atomic<std::uint64_t> long_bytes{0}, long_ns{0}; ///< pace.h
};

struct JobView {
  int pe = 0;
  int n_pes = 1;
  std::string host;
  JobHealth* health = nullptr;
  double timeout_s = 60;
  std::vector<UsedDevice> devices;
  std::vector<std::unique_ptr<Nic>> nics; ///< best first
  std::vector<std::string> peer_hosts;    ///< by PE

  verbs::Device& device_of(const Nic& nic) const { return *devices[nic.device_index].device; }
  /// This PE and port, for messages.
  Where where(const Nic& nic) const { return {host, pe, device_of(nic).name(), nic.port.number}; }
  /// The same error, extended by this host and PE.
  Error here(const Error& error) const {
    Where where = error.where();
    where.host = host;
    where.pe = pe;
    return {error.code(),           error.subject(), error.attempted(),
            error.system_message(), error.fix(),     where};
  }
  /// "PE 3 on node2"
  std::string name_of(int peer) const {
    const auto slot = static_cast<std::size_t>(peer);
    const bool known = slot < peer_hosts.size() && !peer_hosts[slot].empty();
    return "PE " + std::to_string(peer) + (known ? " on " + peer_hosts[slot] : "");
  }
};

} // namespace shmemctl::ibrc
