#include "transports/rc/job.h"

#include <utility>

namespace shmemctl::rc {

std::string Job::name_of(int peer) const {
  const auto slot = static_cast<std::size_t>(peer);
  const bool known = slot < peer_hosts.size() && !peer_hosts[slot].empty();
  return "PE " + std::to_string(peer) + (known ? " on " + peer_hosts[slot] : "");
}

Error Job::here(const Error& error) const {
  Where where = error.where();
  where.host = host;
  where.pe = pe;
  return error.with_where(std::move(where));
}

Error Job::malformed(int peer, const std::string& what) const {
  return {ExitCode::unavailable,
          name_of(peer),
          "read " + what,
          "malformed message",
          "run the same version of shmemctl on all hosts",
          where()};
}

Error Job::not_registered(const RemoteAddress& address) const {
  return {ExitCode::unavailable,
          "offset " + std::to_string(address.offset_bytes) + " of region " +
              std::to_string(address.region),
          "",
          "not registered by " + name_of(address.pe),
          "use symmetric memory of that PE",
          where()};
}

} // namespace shmemctl::rc
