// The transports of a job, chosen from its options.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"
#include "transports/transport.h"

namespace shmemctl {

/// The options that transports read according to the registry, for validation.
const std::vector<std::string>& transport_option_names();

/// In a list of transports: the first of remote_candidates() to reach all PEs, or else the most.
inline constexpr const char* automatic_transport = "auto";

/// The transports that are tried in turn to reach PEs of other nodes if no option names one.
const std::vector<std::string>& remote_candidates();

/// Names of the transports, best first: those of TRANSPORT if it is set. Otherwise shm; if
/// `beyond_memory` or an option names a remote transport, also REMOTE_TRANSPORT (unless it is none;
/// it may be automatic_transport), and with IB_ENABLE_IBGDA also ibgda (an unknown REMOTE_TRANSPORT
/// is then left out). Throws Error (usage) for another unknown name, or one that is repeated.
/// @param beyond_memory some PEs share no memory
std::vector<std::string> choose_transports(const Options& options, bool beyond_memory);

/// Whether the transport would reach another host that is equal to this one. Opens its library;
/// throws Error.
Reach reach_of_twin(const std::string& name, const Options& options);

/// How the transport to other nodes was chosen: the same on all PEs.
struct RemoteChoice {
  struct Rejected {
    std::string name;
    std::string reason; ///< "PE 0 (host a) to PE 2: no RDMA device"
    bool operator==(const Rejected&) const = default;
  };
  std::string chosen;             ///< "": none is needed or wanted, or TRANSPORT names all
  bool automatic = false;         ///< the candidates were tried, as no option names one
  std::vector<Rejected> rejected; ///< the candidates that were tried before `chosen`; if no
                                  ///< candidate reaches all pairs, all except `chosen`
  /// An option that would reach all pairs if the transports in use do not: "--remote-transport
  /// ucx".
  std::string advice;
  /// Names of other transports that would also reach all pairs.
  std::vector<std::string> other_advice = {};
};
/// "libfabric (not ibrc: PE 0 (host a) to PE 2: no RDMA device)"; "" if nothing was chosen.
std::string to_text(const RemoteChoice& choice);
/// The option that selects `remote` instead of the remote transport in use: "--remote-transport
/// ucx", or, if TRANSPORT is set, "--transport shm,ucx".
std::string option_for(const std::string& remote, const Options& options);

} // namespace shmemctl
