// The phases that find out who and where the PEs are.
#include <algorithm>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/nic_choice.h"
#include "src/runtime/numa_choice.h"
#include "src/runtime/runtime_impl.h"
#include "src/runtime/subworld.h"
#include "src/topo/mapping/request.h"
#include "src/topo/readers/reader.h"

namespace shmemctl {

namespace {

std::string to_line(const HostIdentity& identity) {
  return std::to_string(identity.machine_id) + " " + std::to_string(identity.node_id) + " " +
         std::to_string(identity.network_namespace) + " " + std::to_string(identity.pid_namespace) +
         " " + std::to_string(::getpid()) + " " + identity.host_name;
}

PeHost from_line(const std::string& line, int pe) {
  const std::vector<std::string> words = split_blanks(line);
  const auto number = [&](std::size_t at) {
    return at < words.size() ? std::strtoull(words[at].c_str(), nullptr, 10) : 0;
  };
  if (words.size() < 5)
    throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "read its host name",
                "malformed message \"" + line + "\"",
                "run the same version of shmemctl on all hosts");
  PeHost host;
  host.machine_id = number(0);
  host.node_id = number(1);
  host.network_namespace = number(2);
  host.pid_namespace = number(3);
  host.pid = static_cast<std::int64_t>(number(4));
  host.host_name = words.size() > 5 ? words[5] : "";
  return host;
}

} // namespace

void Runtime::Impl::gather_hosts() {
  const std::vector<std::string> lines = allgather_text(*bootstrap, to_line(identity), deadline());
  std::vector<PeHost> hosts;
  for (std::size_t pe = 0; pe < lines.size(); ++pe)
    hosts.push_back(from_line(lines[pe], static_cast<int>(pe)));
  placement = place(bootstrap->rank(), std::move(hosts));
}

void Runtime::Impl::enter_hosts() {
  identity = read_identity(Sysroot("/"), options, request.environment);
  gather_hosts();
  if (request.hosts_known)
    request.hosts_known(placement);
  if (parse_world_mode(options.text("INIT_MODE")) != WorldMode::per_local_rank)
    return;
  std::unique_ptr<Bootstrap> rail = join_rail(*bootstrap, placement, options, deadline());
  parent_bootstrap = std::move(bootstrap);
  bootstrap = std::move(rail);
  gather_hosts();
}

/// Also gives each PE of this node its GPU, as `topo` does.
void Runtime::Impl::enter_devices() {
  node = read_machine(Sysroot("/"));
  wanted_mapping = mapping_request(options, node);
  if (options.integer("PES_PER_NODE") == 0 && !options.value("GPUS").set()) {
    const auto local_pes = placement.node_pes[static_cast<std::size_t>(placement.my_node())].size();
    wanted_mapping.gpus = assign_gpus(node, static_cast<int>(local_pes), {});
  }
}

void Runtime::Impl::enter_nics() {
  mapping = map_nics(node, wanted_mapping);
  const std::vector<HcaPort> ports =
      ports_of_pe(node, mapping, static_cast<std::size_t>(placement.my_local_pe()),
                  placement.node_pes[static_cast<std::size_t>(placement.my_node())].size());
  for (const TransportEntry& entry : transports)
    if (!ports.empty())
      entry.transport->use_nics(ports);
}

/// The NUMA node for the heap's pages; -1 for any.
int Runtime::Impl::choose_heap_node() const {
  const auto local_pe = static_cast<std::size_t>(placement.my_local_pe());
  const int near_gpu = local_pe < wanted_mapping.gpus.size() ? wanted_mapping.gpus[local_pe] : -1;
  const NumaChoice choice = choose_numa_node(node, allowed_cpus(Sysroot("/")), near_gpu);
  log(LogLevel::info, "memory",
      "PE " + std::to_string(placement.pe) + ": the heap prefers " +
          (choice.node < 0 ? "no NUMA node: " : "NUMA node " + std::to_string(choice.node) + ": ") +
          choice.reason);
  return choice.node;
}

} // namespace shmemctl
