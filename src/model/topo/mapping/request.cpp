// Mapping requests from options, and the comparison of NVSHMEM releases.
#include "src/model/topo/mapping/request.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/model/topo/mapping/nvshmem_mapping.h"

namespace shmemctl {

namespace {

std::optional<std::string> text_if_set(const Options& options, const std::string& name) {
  const OptionValue& value = options.value(name);
  return value.set() ? std::optional(value.text) : std::nullopt;
}

Policy policy_of(const Options& options) {
  const std::string name = lower(options.text("POLICY"));
  for (Policy policy : {Policy::nvshmem, Policy::nccl, Policy::optimal})
    if (name == to_string(policy))
      return policy;
  return Policy::nvshmem;
}

World world_of(const Options& options) {
  const std::string name = lower(options.text("WORLD"));
  for (World world : {World::node, World::deepep_ht, World::deepep_ll})
    if (name == to_string(world))
      return world;
  return World::node;
}

/// The error for a value of an option, which names the flag, variable or file that set it.
Error refused(const Options& options, const std::string& name, const std::string& cause,
              const std::string& fix) {
  const OptionValue& value = options.value(name);
  switch (value.origin) {
  case OptionOrigin::command_line:
    return {ExitCode::usage, value.origin_name + " " + value.text, "", cause, fix};
  case OptionOrigin::config_file:
    return {ExitCode::usage, name + "=" + value.text, "", cause + ", in " + value.origin_name, fix};
  default:
    return {ExitCode::usage, value.origin_name + "=" + value.text, "", cause, fix};
  }
}

std::vector<int> gpu_list(const Options& options, const Node& node) {
  std::vector<int> gpus;
  const std::string text = options.text("GPUS");
  if (trim(text).empty())
    return gpus;
  for (const std::string& part : split(text, ',')) {
    const std::optional<long long> gpu = parse_integer(trim(part));
    if (!gpu || *gpu < 0 || *gpu >= static_cast<long long>(node.gpus.size()))
      throw refused(options, "GPUS",
                    "\"" + part + "\" is not a GPU of this node, which has " +
                        std::to_string(node.gpus.size()),
                    node.gpus.empty()
                        ? "leave it out"
                        : "pass indices that shmemctl topo shows, such as 0,1, or leave it out");
    gpus.push_back(static_cast<int>(*gpu));
  }
  return gpus;
}

/// Whether the node has RDMA devices and none of them has a port for ibrc: EFA's are neither
/// InfiniBand nor Ethernet. A source that does not report the link layer decides nothing.
bool needs_libfabric(const Node& node) {
  const std::vector<NicUse> ports = usable_ports(node);
  return !ports.empty() && std::all_of(ports.begin(), ports.end(), [&node](const NicUse& use) {
    for (const NicPort& port : node.nics[static_cast<std::size_t>(use.nic)].ports)
      if (port.number == use.port)
        return port.link_layer && *port.link_layer == LinkLayer::other;
    return false;
  });
}

} // namespace

const std::vector<std::string>& mapping_option_names() {
  static const std::vector<std::string> names = {"POLICY",
                                                 "WORLD",
                                                 "NVSHMEM_VERSION",
                                                 "PES_PER_NODE",
                                                 "GPUS",
                                                 "HCA_LIST",
                                                 "HCA_PE_MAPPING",
                                                 "ENABLE_NIC_PE_MAPPING",
                                                 "HCA_PREFIX",
                                                 "NETDEVS_POLICY",
                                                 "DISABLE_DATA_DIRECT",
                                                 "REMOTE_TRANSPORT",
                                                 "IB_ENABLE_IBGDA",
                                                 "IBGDA_ENABLE_MULTI_PORT"};
  return names;
}

NvshmemSettings nvshmem_settings(const Options& options) {
  NvshmemSettings settings;
  if (const std::string text = options.text("NVSHMEM_VERSION"); !text.empty()) {
    const std::optional<NvshmemVersion> version = parse_nvshmem_version(text);
    if (!version)
      throw refused(options, "NVSHMEM_VERSION", "not a version",
                    "pass a release of NVSHMEM, such as 3.4.5");
    settings.version = *version;
  }
  // If it is not set, NVSHMEM's default applies.
  const std::string asked = options.text("REMOTE_TRANSPORT");
  const std::string remote = asked == "auto" ? "ibrc" : asked;
  const std::optional<std::string> word = parse_remote_transport(remote);
  settings.proxy_transport = transport_of_name(word.value_or("none"));
  settings.unknown_transport = word ? "" : remote;
  settings.transport =
      options.boolean("IB_ENABLE_IBGDA") ? NvshmemTransport::ibgda : settings.proxy_transport;
  settings.hca_list = text_if_set(options, "HCA_LIST");
  settings.hca_pe_mapping = text_if_set(options, "HCA_PE_MAPPING");
  settings.hca_prefix = text_if_set(options, "HCA_PREFIX");
  settings.enable_nic_pe_mapping = options.boolean("ENABLE_NIC_PE_MAPPING");
  settings.ibgda_multi_port = options.boolean("IBGDA_ENABLE_MULTI_PORT");
  settings.disable_data_direct = options.boolean("DISABLE_DATA_DIRECT");
  settings.netdevs_policy = options.text("NETDEVS_POLICY");
  return settings;
}

MappingRequest mapping_request(const Options& options, const Node& node) {
  options.require_valid(mapping_option_names());
  MappingRequest request;
  request.policy = policy_of(options);
  request.world = world_of(options);
  request.nvshmem = nvshmem_settings(options);
  if (options.text("REMOTE_TRANSPORT") == "auto" && needs_libfabric(node)) {
    request.nvshmem.libfabric_assumed = true;
    request.nvshmem.proxy_transport = NvshmemTransport::libfabric;
    if (request.nvshmem.transport != NvshmemTransport::ibgda)
      request.nvshmem.transport = NvshmemTransport::libfabric;
  }
  const long long pes = options.integer("PES_PER_NODE");
  request.gpus = assign_gpus(node, pes > 0 ? static_cast<int>(pes) : -1, gpu_list(options, node));
  return request;
}

namespace {

bool same_answer(const PeMapping& left, const PeMapping& right) {
  return left.nics == right.nics && left.used == right.used;
}

bool same_answers(const std::vector<PeMapping>& left, const std::vector<PeMapping>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), same_answer);
}

} // namespace

std::vector<NvshmemVersion> compared_versions(const NvshmemSettings& settings) {
  std::vector<NvshmemVersion> versions = representative_versions();
  versions.push_back({2, 8, 0});  // before HCA_PE_MAPPING is ignored
  versions.push_back({3, 2, 5});  // before HCA_LIST holds 48 entries
  versions.push_back({3, 3, 20}); // before HCA_PREFIX and data-direct paths
  versions.push_back({3, 5, 1});  // before HCA_PREFIX means "^smi"
  versions.push_back(settings.version);
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  std::erase_if(versions, [&settings](const NvshmemVersion& version) {
    return !has_transport(version, settings.transport);
  });
  return versions;
}

std::vector<VersionDifference> compare_versions(const Node& node, const MappingRequest& request) {
  std::vector<VersionDifference> differences;
  for (const NvshmemVersion& version :
       compared_versions(settings_in(request.world, request.nvshmem))) {
    MappingRequest asked = request;
    asked.policy = Policy::nvshmem;
    asked.nvshmem.version = version;
    std::vector<PeMapping> pes = map_nics(node, asked).pes;
    const auto same = std::find_if(
        differences.begin(), differences.end(),
        [&pes](const VersionDifference& known) { return same_answers(known.pes, pes); });
    if (same != differences.end())
      same->versions.push_back(version);
    else
      differences.push_back({{version}, std::move(pes)});
  }
  return differences;
}

} // namespace shmemctl
