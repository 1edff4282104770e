#include "transports/libfabric/profile.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "transports/libfabric/operations.h"

namespace shmemctl::fabric {

namespace {

constexpr int all_mr_modes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

/// ofi_rxm allocates thousands of buffers of this size when an endpoint opens. With its default of
/// 16 KiB, they use 90 MiB in each PE. Puts, gets and atomics do not use these buffers, and the
/// transport's messages are smaller.
constexpr const char* rxm_buffer_bytes = "1024";
static_assert(Operation::payload_bytes < 1024 / 2);

/// The profile of any other provider: assumes no guarantees.
Profile generic() {
  Profile profile;
  profile.name = "generic";
  profile.capabilities = FI_RMA | FI_ATOMIC | FI_MSG;
  profile.modes = FI_CONTEXT | FI_CONTEXT2;
  profile.mr_mode = all_mr_modes | FI_MR_ENDPOINT;
  profile.words_may_tear = true;
  return profile;
}

/// There is one byte stream per pair of endpoints, so operations are in order; but a read from the
/// stream may end in the middle of a word. ofi_rxm has software atomics.
Profile tcp() {
  Profile profile = generic();
  profile.name = "tcp";
  profile.providers = {"tcp;ofi_rxm", "tcp"};
  profile.in_order = true;
  profile.listens_on_tcp = true;
  profile.provider_atomics_by_cpu = true; // ofi_rxm uses the compiler's atomics
  profile.variables = {{"FI_OFI_RXM_BUFFER_SIZE", rxm_buffer_bytes, false, true}};
  return profile;
}

Profile verbs() {
  Profile profile = generic();
  profile.name = "verbs";
  profile.providers = {"verbs;ofi_rxm"};
  profile.may_reach_gpus = true;
  profile.words_may_tear = false;
  profile.provider_atomics_by_cpu = true;
  // NVSHMEM also sets MLX5_SCATTER_TO_CQE=0. FI_UNIVERSE_SIZE determines the size of ofi_rxm's
  // completion queues; with the default of 256, software devices refuse them.
  profile.variables = {{"MLX5_SCATTER_TO_CQE", "0"},
                       {"FI_UNIVERSE_SIZE", "n_pes"},
                       {"FI_OFI_RXM_BUFFER_SIZE", rxm_buffer_bytes, false, true},
                       {"FI_HMEM_CUDA_USE_GDRCOPY", "1"}};
  return profile;
}

/// The rules of NVSHMEM's libfabric transport (3.5) for EFA: no selective completion, no order,
/// atomics by message, signals by counting. Completions have the format FI_CQ_FORMAT_DATA, since
/// their 4 bytes of immediate data identify the arrived payload.
Profile efa() {
  Profile profile;
  profile.name = "efa";
  profile.providers = {"efa"};
  profile.may_reach_gpus = true;
  profile.capabilities = FI_RMA | FI_MSG;
  profile.modes = FI_CONTEXT2;
  profile.mr_mode = all_mr_modes | FI_MR_HMEM;
  profile.cq_format = FI_CQ_FORMAT_DATA;
  profile.cq_size = 32768;
  profile.selective_completion = false;
  profile.staged_atomics = true;
  profile.local_registration = true;
  profile.counted_signals = true;
  profile.words_may_tear = false;
  profile.endpoints = 2;
  profile.operations = 2048;
  profile.receives = 1024;
  // Transfers by shared memory are off: PEs of a node would need each other's progress (NVSHMEM).
  profile.variables = {{"FI_EFA_USE_DEVICE_RDMA", "1", true},
                       {"FI_EFA_ENABLE_SHM_TRANSFER", "0"},
                       {"FI_HMEM_CUDA_USE_GDRCOPY", "1"}};
  profile.needs_gdrcopy = true;
  return profile;
}

/// Slingshot: the NIC executes atomics, which are not atomic with those of the CPU.
Profile cxi() {
  Profile profile = generic();
  profile.name = "cxi";
  profile.providers = {"cxi"};
  profile.may_reach_gpus = true;
  profile.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  profile.words_may_tear = false;
  profile.variables = {{"FI_CXI_DISABLE_HMEM_DEV_REGISTER", "1"},
                       {"FI_CXI_OPTIMIZED_MRS", "0"},
                       {"FI_HMEM_CUDA_USE_GDRCOPY", "1"}};
  return profile;
}

/// A provider with its own profile or another one. Another profile does not change how the
/// endpoints are reached, whether NICs access GPU memory, and whether words may tear.
ProviderChoice choice_of(const std::string& provider, const Profile& own, const Profile* rules) {
  ProviderChoice choice{provider, rules ? *rules : own};
  choice.profile.listens_on_tcp = own.listens_on_tcp;
  choice.profile.words_may_tear = own.words_may_tear;
  choice.profile.may_reach_gpus = own.may_reach_gpus;
  return choice;
}

} // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> all = {cxi(), efa(), verbs(), tcp()};
  return all;
}

const Profile* find_profile(const std::string& name) {
  const auto& all = profiles();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Profile& profile) { return profile.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<ProviderChoice> provider_choices(const std::string& provider,
                                             const std::string& profile) {
  std::vector<ProviderChoice> choices;
  const Profile* const rules = find_profile(profile);
  const Profile* const named = find_profile(provider);
  if (!provider.empty() && !named)
    return {choice_of(provider, generic(), rules)};
  for (const Profile& each : profiles())
    if (provider.empty() || named == &each)
      for (const std::string& name : each.providers)
        choices.push_back(choice_of(name, each, rules));
  return choices;
}

std::string prepare_environment(const Profile& profile, int n_pes) {
  static std::mutex mutex; // guards the environment against other transports of this process
  const std::lock_guard lock(mutex);
  for (const ProviderVariable& variable : profile.variables) {
    const std::string value =
        variable.value == "n_pes" ? std::to_string(std::max(n_pes, 8)) : variable.value;
    const char* const present = std::getenv(variable.name.c_str());
    if (!present)
      ::setenv(variable.name.c_str(), value.c_str(), 0);
    else if (variable.required && value != present)
      return variable.name + " is \"" + present + "\" and has to be " + value;
  }
  return {};
}

} // namespace shmemctl::fabric
