// The transports of a job, chosen from its options.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"
#include "transports/transport.h"

namespace shmemctl {

/// The options that transports read, as the registry has them, for validation.
const std::vector<std::string>& transport_option_names();

/// In a list of transports: the first of remote_candidates() that reaches all PEs.
inline constexpr const char* automatic_transport = "auto";

/// The transports that are tried in turn to reach PEs of other nodes if no option names one.
const std::vector<std::string>& remote_candidates();

/// Names of the transports, best first: TRANSPORT if it is set; otherwise shm, and if some PEs
/// share no memory or an option names one, REMOTE_TRANSPORT (which may be automatic_transport), and
/// with IB_ENABLE_IBGDA also ibgda. The same on all PEs that have the same options. Throws Error
/// (usage) for an unknown or repeated name.
std::vector<std::string> choose_transports(const Options& options, bool beyond_memory);

/// What a transport says here of another host that is like this one. Opens its library; throws
/// Error.
Reach reach_of_twin(const std::string& name, const Options& options);

/// How the transport beyond the node was found: the same on all PEs.
struct RemoteChoice {
  struct Rejected {
    std::string name;
    std::string reason; ///< "PE 0 (host a) to PE 2: no RDMA device"
    bool operator==(const Rejected&) const = default;
  };
  std::string chosen;             ///< "": none is needed, or TRANSPORT names all
  bool automatic = false;         ///< no option names one
  std::vector<Rejected> rejected; ///< candidates before `chosen` in the order; if there is a gap,
                                  ///< all other candidates
  /// The option that would reach all pairs, where those in use do not: "--remote-transport ucx".
  std::string advice;
  /// Other transports that would, by their names.
  std::vector<std::string> other_advice = {};
};
/// "libfabric (not ibrc: PE 0 (host a) to PE 2: no RDMA device)"; "" if nothing was chosen.
std::string to_text(const RemoteChoice& choice);
/// How to name `remote` instead of what the options name: "--remote-transport ucx".
std::string option_for(const std::string& remote, const Options& options);

} // namespace shmemctl
