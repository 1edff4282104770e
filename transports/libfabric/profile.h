// Providers of libfabric differ in their guarantees. A profile is the set of rules followed for
// one.
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

  std::uint64_t capabilities = 0; ///< FI_RMA and the like
  std::uint64_t modes = 0;        ///< required by the provider (FI_CONTEXT2)
  int mr_mode = 0;                ///< bits of memory registration that we offer

  fi_cq_format cq_format = FI_CQ_FORMAT_CONTEXT;
  std::size_t cq_size = 0; ///< 0: the provider's
  /// Selective completion; otherwise every operation completes, and its completion is processed.
  bool selective_completion = true;

  /// Atomic operations travel as messages and are executed by the target's processor. Otherwise
  /// the provider's are used if it has every one that is needed.
  bool staged_atomics = false;
  /// Nothing orders payload and signal: the target counts arrivals of the payload.
  bool counted_signals = false;
  /// Writes to one peer are performed in posting order.
  bool in_order = false;
  /// A put of a word may be torn: it must be done as an atomic.
  bool words_may_tear = false;
  /// Endpoints listen on a TCP port, so that a peer that has ended refuses connections.
  bool listens_on_tcp = false;
  /// Local memory is registered or staged even if the provider would accept any.
  bool local_registration = false;
  /// The provider's atomics are executed by the target's CPU, with CPU atomics.
  bool provider_atomics_by_cpu = false;

  int endpoints = 1;               ///< for each NIC
  std::size_t operations = 1024;   ///< contexts of operations in flight, for each endpoint
  std::size_t receives = 256;      ///< receive buffers, for each endpoint
  std::size_t bounce_buffers = 32; ///< buffers for local memory that is not registered
  std::size_t bounce_bytes = std::size_t{64} << 10;

  std::vector<ProviderVariable> variables;
  /// Its NICs may access GPU memory: FI_HMEM is requested if there are GPUs.
  bool may_reach_gpus = false;
  /// Device memory is read and written by the CPU: GDRCopy must be there if there are GPUs.
  bool needs_gdrcopy = false;
};

/// All profiles, in the order in which providers are tried: cxi, efa, verbs, tcp.
const std::vector<Profile>& profiles();
/// Null if there is none of that name.
const Profile* find_profile(const std::string& name);

/// The provider and whose rules are followed for it.
struct ProviderChoice {
  std::string provider; ///< libfabric's name
  Profile profile;
};

/// What is to be tried, best first.
/// @param provider the option: a profile's name, or libfabric's name of a provider; "" is any
/// @param profile  the option: "" are the provider's own rules
std::vector<ProviderChoice> provider_choices(const std::string& provider,
                                             const std::string& profile);

/// Sets the profile's environment variables that are unset, before libfabric reads them. Returns
/// the error of a required one, or "".
std::string prepare_environment(const Profile& profile, int n_pes);

} // namespace shmemctl::fabric
