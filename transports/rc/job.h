// The facts about the job that all parts of a transport over reliable connections use.
#pragma once

#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/job_health.h"
#include "transports/transport.h"

namespace shmemctl::rc {

struct Job {
  Job() = default;
  explicit Job(const TransportSetup& setup)
      : pe(setup.pe), n_pes(setup.n_pes), host(setup.host_name), health(setup.health),
        timeout_s(setup.timeout_s) {}

  int pe = 0;
  int n_pes = 1;
  std::string host;
  JobHealth* health = nullptr;
  double timeout_s = 60;
  std::vector<std::string> peer_hosts; ///< by PE; filled by read_hellos()

  /// This PE, for error messages.
  Where where() const { return {host, pe, {}, std::nullopt}; }
  /// This PE and a port, for error messages.
  Where where(const std::string& device, int port) const { return {host, pe, device, port}; }
  /// "PE 3 on node2"
  std::string name_of(int peer) const;
  /// The same error, extended by this host and PE.
  Error here(const Error& error) const;
  /// Error (unavailable): the peer has sent something that this version cannot decode.
  /// @param what "its rkeys"
  Error malformed(int peer, const std::string& what) const;
  /// Error (unavailable): the peer has not registered that address.
  Error not_registered(const RemoteAddress& address) const;
};

} // namespace shmemctl::rc
