// Profiles: providers of libfabric differ in their guarantees, and a profile is the set of rules
// that the transport follows for a provider.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rdma/fi_eq.h>

#include "transports/libfabric/probe.h"

namespace shmemctl::fabric {

struct Profile {
  std::string name;                   ///< "tcp", "verbs", "efa", "cxi", "generic"
  std::vector<std::string> providers; ///< libfabric's names, best first

  std::uint64_t capabilities = 0; ///< capabilities to request: FI_RMA, ...
  std::uint64_t modes = 0;        ///< modes that the transport supports: FI_CONTEXT2, ...
  int mr_mode = 0;                ///< modes of memory registration that the transport supports

  fi_cq_format cq_format = FI_CQ_FORMAT_CONTEXT;
  std::size_t cq_size = 0; ///< 0: the provider's default
  /// Whether the CQ is bound with selective completion. If not, every operation gives a completion.
  bool selective_completion = true;

  /// Whether atomics are sent as messages, which the target's CPU executes. If not, the provider's
  /// atomics are used if it has all that are needed.
  bool staged_atomics = false;
  /// Whether the target counts arrived payloads before it executes a signal, since nothing orders
  /// them.
  bool counted_signals = false;
  /// Whether writes to one peer are executed in posting order.
  bool in_order = false;
  /// Whether a write may tear a word. If so, words are put by message.
  bool words_may_tear = false;
  /// Whether endpoints listen on a TCP port: then a peer that has ended refuses connections.
  bool listens_on_tcp = false;
  /// Whether local memory is registered or staged even if the provider accepts any memory.
  bool local_registration = false;
  /// Whether the target's CPU executes the provider's atomics, with CPU atomics.
  bool provider_atomics_by_cpu = false;

  int endpoints = 1;               ///< endpoints for each NIC
  std::size_t operations = 1024;   ///< operations in flight, for each endpoint
  std::size_t receives = 256;      ///< receive buffers, for each endpoint
  std::size_t bounce_buffers = 32; ///< buffers for local memory that is not registered
  std::size_t bounce_bytes = std::size_t{64} << 10;

  std::vector<ProviderVariable> variables;
  /// Whether its NICs may access GPU memory: FI_HMEM is requested if there are GPUs.
  bool may_reach_gpus = false;
  /// Whether GDRCopy is required if there are GPUs, since the CPU reads and writes GPU memory.
  bool needs_gdrcopy = false;
};

/// All profiles but "generic", in the order in which providers are tried: cxi, efa, verbs, tcp.
const std::vector<Profile>& profiles();
/// The profile of that name; nullptr if there is none.
const Profile* find_profile(const std::string& name);

/// A provider, and the profile that is used for it.
struct ProviderChoice {
  std::string provider; ///< libfabric's name
  Profile profile;
};

/// The providers to try, best first.
/// @param provider value of the option: a profile's name, or libfabric's name of a provider; "" for
///                 any provider
/// @param profile  value of the option; "" means the provider's own profile
std::vector<ProviderChoice> provider_choices(const std::string& provider,
                                             const std::string& profile);

/// Sets the profile's environment variables that are unset. Must be called before libfabric reads
/// them. Returns the problem if a required variable has a wrong value, else "".
std::string prepare_environment(const Profile& profile, int n_pes);

} // namespace shmemctl::fabric
