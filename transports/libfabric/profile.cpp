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

/// ofi_rxm takes thousands of buffers of this size when an endpoint opens: at its default of 16 KiB
/// they are 90 MiB of each PE. Puts, gets and atomics do not pass through them, and our messages
/// are smaller.
constexpr const char* rxm_buffer_bytes = "1024";
static_assert(Operation::payload_bytes < 1024 / 2);

/// Any other provider: nothing is assumed.
Profile generic() {
  Profile profile;
  profile.name = "generic";
  profile.capabilities = FI_RMA | FI_ATOMIC | FI_MSG;
  profile.modes = FI_CONTEXT | FI_CONTEXT2;
  profile.mr_mode = all_mr_modes | FI_MR_ENDPOINT;
  profile.words_may_tear = true;
  return profile;
}

/// One byte stream per pair of endpoints, which is in order; but a read of the stream may end in
/// the middle of a word. Software atomics under ofi_rxm.
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
  // MLX5_SCATTER_TO_CQE=0 is NVSHMEM's. The universe sizes ofi_rxm's completion queues, which soft
  // devices refuse at the default of 256.
  profile.variables = {{"MLX5_SCATTER_TO_CQE", "0"},
                       {"FI_UNIVERSE_SIZE", "n_pes"},
                       {"FI_OFI_RXM_BUFFER_SIZE", rxm_buffer_bytes, false, true},
                       {"FI_HMEM_CUDA_USE_GDRCOPY", "1"}};
  return profile;
}

/// NVSHMEM's rules for EFA (its libfabric transport, 3.5): no selective completion, nothing in
/// order, atomics by message, signals by counting. Its queue format is the message format and the
/// 4 bytes of data that identify the payload that has arrived (FI_CQ_FORMAT_DATA).
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
  // Through shared memory, peers of one node need each other's progress (NVSHMEM's release notes).
  profile.variables = {{"FI_EFA_USE_DEVICE_RDMA", "1", true},
                       {"FI_EFA_ENABLE_SHM_TRANSFER", "0"},
                       {"FI_HMEM_CUDA_USE_GDRCOPY", "1"}};
  profile.needs_gdrcopy = true;
  return profile;
}

/// Slingshot: atomics by the NIC, which are not atomic with the processor's.
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

/// Other rules for a provider do not change how its endpoints are reached, whether its NICs reach
/// GPUs, and how it writes words.
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
  static std::mutex mutex; // of the process's environment, among transports
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
