// The `uid` bootstrap: TCP connections between processes that have the same unique id.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/secret.h"
#include "src/base/socket.h"
#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl {

/// Names one job: where its rendezvous listens, and the secret by which its members are recognised.
struct UniqueId {
  static constexpr int version = 1;
  std::vector<SocketAddress> addresses; ///< all with the same port, or one Unix name
  Secret secret{};                      ///< random, or derived from another secret

  /// One printable token, e.g. "shmemctl-uid-1:<hex>:10.0.0.1:4711,[fd00::1]:4711".
  std::string text() const;
  /// Throws Error (usage) that says what is wrong with the text, without printing the secret.
  static UniqueId parse(const std::string& text);
};

/// Which addresses a job may use.
struct InterfaceFilter {
  std::string names;  ///< NCCL's syntax: comma list of prefixes; leading ^ excludes; = is exact
  std::string family; ///< "", "AF_INET" or "AF_INET6"
};
/// Addresses of this host's interfaces that are up and match the filter, best first: in the order
/// of `names`; if `names` is empty or excludes, first ordinary interfaces, then container bridges
/// (docker*, virbr*, ...), link-local addresses, interfaces that are not running, and loopback.
/// Throws Error (usage) that lists the interfaces of this host if none matches.
std::vector<SocketAddress> usable_addresses(const InterfaceFilter& filter);

/// The listener through which the PEs of one job find each other: it collects every PE's rank and
/// address, rejects wrong secrets, duplicate ranks and different sizes, and sends each PE the
/// addresses of its neighbours at rank + 2^k. It carries no payload. It runs on a separate thread.
class Rendezvous {
public:
  /// Listens on the usable addresses, 16 at most; on loopback if there are no others. Throws Error.
  static std::unique_ptr<Rendezvous> start(const InterfaceFilter& filter, double timeout_s,
                                           const Secret& secret = random_secret());
  /// Listens on an abstract Unix name, for PEs of this host only.
  static std::unique_ptr<Rendezvous> start_local(double timeout_s,
                                                 const Secret& secret = random_secret());
  /// Listens on the given address, with the given secret (…_UID_SESSION_ID).
  static std::unique_ptr<Rendezvous> start_at(const SocketAddress& address, const Secret& secret,
                                              double timeout_s);
  virtual ~Rendezvous() = default;
  virtual const UniqueId& id() const = 0;
};

struct UidArguments {
  int rank = 0, size = 1;
  UniqueId id;
  std::unique_ptr<Rendezvous> rendezvous; ///< held by the PE that made the id, if a PE made it
  InterfaceFilter interfaces;
  std::string name = "uid"; ///< what Bootstrap::name() returns: "uid" or "local"
};
/// Joins the job. Collectives take ceil(log2 N) rounds among neighbours: dissemination for
/// barrier, Bruck's algorithms for allgather and alltoall, binomial trees for broadcast and gather.
/// Every frame carries the number and kind of the call and its size, so that PEs that are out of
/// step get an Error that names both calls.
std::unique_ptr<Bootstrap> join_uid(UidArguments arguments, const Deadline& deadline);

} // namespace shmemctl
