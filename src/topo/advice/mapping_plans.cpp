#include "src/topo/advice/mapping_plans.h"

#include <algorithm>

#include "src/base/remote_transport.h"
#include "src/base/text.h"
#include "src/topo/advice/env_lines.h"
#include "src/topo/mapping/nic_roles.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

constexpr const char* hca_list = "NVSHMEM_HCA_LIST";
constexpr const char* hca_pe_mapping = "NVSHMEM_HCA_PE_MAPPING";
constexpr const char* hca_prefix = "NVSHMEM_HCA_PREFIX";
constexpr const char* enable_nic_pe_mapping = "NVSHMEM_ENABLE_NIC_PE_MAPPING";
constexpr const char* enable_ibgda = "NVSHMEM_IB_ENABLE_IBGDA";
constexpr const char* remote_transport = "NVSHMEM_REMOTE_TRANSPORT";

template <class Predicate>
bool any_rank(const MappingRequest& request, Predicate predicate) {
  return predicate(request.nvshmem) ||
         std::any_of(request.nvshmem_per_pe.begin(), request.nvshmem_per_pe.end(), predicate);
}

void unset_list(const MappingRequest& request, EnvChange& change) {
  if (any_rank(request, [](const NvshmemSettings& each) { return each.hca_list.has_value(); }))
    change.unset(hca_list);
}

void unset_pe_mapping(const MappingRequest& request, EnvChange& change) {
  if (any_rank(request,
               [](const NvshmemSettings& each) { return each.hca_pe_mapping.has_value(); }))
    change.unset(hca_pe_mapping);
  if (any_rank(request, [](const NvshmemSettings& each) { return each.enable_nic_pe_mapping; }))
    change.unset(enable_nic_pe_mapping);
}

EnvChange joined(EnvChange first, const EnvChange& second) {
  return first.add(second);
}

/// To a remote transport that NVSHMEM knows; one empty change where the request has one.
std::vector<EnvChange> remote_transport_changes(const MappingRequest& request) {
  const NvshmemSettings settings = settings_in(request.world, request.nvshmem);
  if (settings.unknown_transport.empty())
    return {{}};
  std::vector<EnvChange> changes;
  const std::string word = lower(trim(settings.unknown_transport));
  if (word == "ibgda" && settings.transport != NvshmemTransport::ibgda)
    changes.push_back(EnvChange().unset(remote_transport).set(enable_ibgda, "1"));
  if (const auto near = nearest_spelling(word, option_spec("REMOTE_TRANSPORT").choices);
      near && word != "ibgda")
    changes.push_back(EnvChange().set(remote_transport, *near));
  changes.push_back(EnvChange().unset(remote_transport));
  return changes;
}

/// For IBGDA and IBDEVX, which skip devices by their names.
std::vector<EnvChange> prefix_changes(const Node& node, const MappingRequest& request,
                                      const Mapping& optimal) {
  std::vector<EnvChange> changes = {{}};
  const NvshmemTransport transport = settings_in(request.world, request.nvshmem).transport;
  if (transport != NvshmemTransport::ibgda && transport != NvshmemTransport::ibdevx)
    return changes;
  if (request.nvshmem.hca_prefix)
    changes.push_back(EnvChange().unset(hca_prefix));
  const std::string common = common_prefix(node, optimal);
  if (has_hca_prefix(request.nvshmem.version) && !common.empty())
    changes.push_back(EnvChange().set(hca_prefix, common));
  return changes;
}

/// Lists and switches by which NVSHMEM could give the optimum.
std::vector<EnvChange> list_changes(const Node& node, const MappingRequest& request,
                                    const Mapping& optimal) {
  std::vector<EnvChange> changes;
  EnvChange without_pe_mapping;
  unset_pe_mapping(request, without_pe_mapping);
  changes.push_back(without_pe_mapping); // what the user leaves out stays out
  EnvChange by_default = without_pe_mapping;
  unset_list(request, by_default);
  changes.push_back(by_default);

  MappingRequest unpinned = request;
  unpinned.nvshmem.hca_pe_mapping.reset();
  if (const auto filter = leaving_out(node, unpinned, other_nics(node)))
    changes.push_back(joined(without_pe_mapping, *filter));

  if (const auto value = hca_pe_mapping_value(node, optimal)) {
    EnvChange pinned;
    unset_list(request, pinned);
    changes.push_back(pinned.set(enable_nic_pe_mapping, "1").set(hca_pe_mapping, *value));
  }
  const std::vector<std::string> lists = devices_per_rank(node, optimal);
  if (!lists.empty() && std::none_of(lists.begin(), lists.end(),
                                     [](const std::string& list) { return list.empty(); }))
    changes.push_back(EnvChange(without_pe_mapping).set_per_rank(hca_list, lists));
  return changes;
}

} // namespace

std::vector<EnvChange> transport_changes(const Node& node, const MappingRequest& request,
                                         const Mapping& optimal) {
  std::vector<EnvChange> changes;
  for (const EnvChange& remote : remote_transport_changes(request))
    for (const EnvChange& prefix : prefix_changes(node, remote.applied_to(request), optimal))
      changes.push_back(joined(remote, prefix));
  // DeepEP enables IBGDA itself: there it cannot be switched off.
  if (request.nvshmem.transport == NvshmemTransport::ibgda && request.world == World::node) {
    EnvChange without = EnvChange().unset(enable_ibgda);
    if (!request.nvshmem.unknown_transport.empty())
      without.unset(remote_transport);
    changes.push_back(without);
  }
  const bool other_is_possible = request.nvshmem.transport == NvshmemTransport::none ||
                                 request.nvshmem.transport == NvshmemTransport::ibdevx;
  if (other_is_possible && request.nvshmem.unknown_transport.empty())
    changes.push_back(EnvChange().unset(remote_transport));
  return changes;
}

std::vector<int> other_nics(const Node& node) {
  std::vector<int> others;
  for (const RatedPort& rated : port_roles(node))
    if (rated.role != PortRole::compute && (others.empty() || others.back() != rated.port.nic))
      others.push_back(rated.port.nic);
  return others;
}

std::optional<EnvChange> leaving_out(const Node& node, const MappingRequest& request,
                                     const std::vector<int>& nics) {
  const std::string listed = request.nvshmem.hca_list.value_or("^");
  const bool excludes = starts_with(listed, "^");
  if (nics.empty() || !excludes || request.nvshmem.hca_pe_mapping ||
      !request.nvshmem_per_pe.empty())
    return std::nullopt;
  std::vector<std::string> names;
  if (listed.size() > 1)
    names.push_back(listed.substr(1));
  for (const int nic : nics)
    names.push_back(node.nics[static_cast<std::size_t>(nic)].name);
  return EnvChange().set(hca_list, "^" + join(names, ","));
}

std::vector<EnvChange> mapping_plans(const Node& node, const MappingRequest& request,
                                     const Mapping& optimal) {
  if (request.policy == Policy::nccl) {
    std::vector<std::string> values = devices_per_rank(node, optimal);
    if (values.empty() || std::any_of(values.begin(), values.end(),
                                      [](const std::string& value) { return value.empty(); }))
      return {};
    for (std::string& value : values)
      value = "=" + value;
    return {EnvChange().set_per_rank("NCCL_IB_HCA", values)};
  }
  std::vector<EnvChange> plans;
  if (request.policy != Policy::nvshmem)
    return plans;
  const std::vector<EnvChange> lists = list_changes(node, request, optimal);
  for (const EnvChange& transport : transport_changes(node, request, optimal)) {
    if (!transport.empty())
      plans.push_back(transport);
    for (const EnvChange& list : lists)
      if (!list.empty())
        plans.push_back(joined(transport, list));
  }
  return plans;
}

} // namespace shmemctl
