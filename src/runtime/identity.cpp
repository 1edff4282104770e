#include "src/runtime/identity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>

#include "src/base/error.h"
#include "src/base/hash.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/bootstrap/uid_bootstrap.h"

namespace shmemctl {

namespace {

constexpr const char* machine_id_path = "/etc/machine-id";
constexpr const char* boot_id_path = "/proc/sys/kernel/random/boot_id";

std::string read_host_name(const Sysroot& sysroot) {
  if (!sysroot.live())
    return sysroot.read_line("/proc/sys/kernel/hostname").value_or("");
  std::array<char, 257> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0)
    return "";
  return name.data();
}

std::uint64_t namespace_inode(const Sysroot& sysroot, const char* path) {
  struct stat status {};
  if (!sysroot.live() || ::stat(path, &status) != 0)
    return 0;
  return status.st_ino;
}

/// Reads an id of hexadecimal digits and dashes; nothing if the file contains anything else:
/// systemd writes "uninitialized" before it generates a machine id, and images contain empty files.
std::optional<std::string> read_id(const Sysroot& sysroot, const char* path) {
  constexpr std::size_t id_digits = 32;
  std::optional<std::string> text = sysroot.read_line(path);
  if (!text)
    return std::nullopt;
  text->erase(std::remove(text->begin(), text->end(), '-'), text->end());
  const bool is_hex = std::all_of(text->begin(), text->end(), [](unsigned char character) {
    return std::isxdigit(character) != 0;
  });
  if (!is_hex || text->size() != id_digits)
    return std::nullopt;
  return lower(*text);
}

std::optional<std::string> virtual_node(const Environment& environment) {
  const auto found = environment.find(local_variables::node);
  if (found == environment.end() || found->second.empty())
    return std::nullopt;
  const std::optional<long long> index = parse_integer(found->second);
  if (!index || *index < 0)
    throw input_error(local_variables::node, "",
                      "\"" + found->second + "\" is not the number of a virtual node",
                      "unset it: `shmemctl run --nodes` sets it for the PEs it starts");
  return std::to_string(*index);
}

bool is_block(const std::vector<int>& node) {
  return std::is_sorted(node.begin(), node.end());
}

bool is_round_robin(const std::vector<int>& node, int n_nodes) {
  for (std::size_t pe = 0; pe < node.size(); ++pe)
    if (node[pe] != static_cast<int>(pe) % n_nodes)
      return false;
  return true;
}

} // namespace

HostIdentity read_machine_identity(const Sysroot& sysroot) {
  HostIdentity identity;
  identity.host_name = read_host_name(sysroot);
  const std::optional<std::string> machine = read_id(sysroot, machine_id_path);
  const std::optional<std::string> boot = read_id(sysroot, boot_id_path);
  std::vector<std::string> missing;
  if (!machine)
    missing.emplace_back(machine_id_path);
  if (!boot)
    missing.emplace_back(boot_id_path);
  identity.what_is_missing = join(missing, ", ");
  // The host name is used only if an id is missing, because containers of one machine have
  // different names.
  const std::string name = missing.empty() ? "" : identity.host_name;
  identity.machine_id =
      fnv1a("machine " + machine.value_or("") + " boot " + boot.value_or("") + " name " + name);
  identity.node_id = identity.machine_id;
  identity.network_namespace = namespace_inode(sysroot, "/proc/self/ns/net");
  identity.pid_namespace = namespace_inode(sysroot, "/proc/self/ns/pid");
  return identity;
}

HostIdentity read_identity(const Sysroot& sysroot, const Options& options,
                           const Environment& environment) {
  HostIdentity identity = read_machine_identity(sysroot);
  const std::string node_text = options.text("NODE_ID");
  if (!node_text.empty())
    identity.node_id = fnv1a("node " + node_text);
  else if (const std::optional<std::string> index = virtual_node(environment))
    identity.node_id = fnv1a("node " + *index + " of " + std::to_string(identity.machine_id));
  return identity;
}

const char* to_string(Distribution distribution) {
  switch (distribution) {
  case Distribution::block:
    return "block";
  case Distribution::round_robin:
    return "round-robin";
  case Distribution::irregular:
    return "irregular";
  }
  return "irregular";
}

Placement place(int pe, std::vector<PeHost> hosts) {
  if (pe < 0 || static_cast<std::size_t>(pe) >= hosts.size())
    throw Error(ExitCode::unavailable, "PE " + std::to_string(pe), "place on a host",
                "the job has only " + std::to_string(hosts.size()) + " PEs",
                "check the rank and size that the launcher gave this process");
  Placement placement;
  placement.pe = pe;
  placement.n_pes = static_cast<int>(hosts.size());
  placement.hosts = std::move(hosts);
  std::map<std::uint64_t, int> index_of;
  for (std::size_t rank = 0; rank < placement.hosts.size(); ++rank) {
    const auto [entry, is_new] =
        index_of.try_emplace(placement.hosts[rank].node_id, placement.n_nodes());
    if (is_new)
      placement.node_pes.emplace_back();
    std::vector<int>& members = placement.node_pes[static_cast<std::size_t>(entry->second)];
    placement.node.push_back(entry->second);
    placement.local_pe.push_back(static_cast<int>(members.size()));
    members.push_back(static_cast<int>(rank));
  }
  const std::size_t first_size = placement.node_pes.front().size();
  placement.equal_pes_per_node =
      std::all_of(placement.node_pes.begin(), placement.node_pes.end(),
                  [&](const std::vector<int>& members) { return members.size() == first_size; });
  if (is_block(placement.node))
    placement.distribution = Distribution::block;
  else if (is_round_robin(placement.node, placement.n_nodes()))
    placement.distribution = Distribution::round_robin;
  else
    placement.distribution = Distribution::irregular;
  return placement;
}

WorldMode parse_world_mode(const std::string& text) {
  static constexpr std::array<std::pair<const char*, WorldMode>, 3> modes = {
      {{"whole", WorldMode::whole},
       {"per-local-rank", WorldMode::per_local_rank},
       {"low-latency", WorldMode::low_latency}}};
  std::vector<std::string> names;
  for (const auto& [name, mode] : modes) {
    if (text == name)
      return mode;
    names.emplace_back(name);
  }
  const std::optional<std::string> near = nearest_spelling(text, names);
  throw input_error("SHMEMCTL_INIT_MODE", "", "unknown mode \"" + text + "\"",
                    near ? "did you mean " + *near + "?" : "choose one of " + join(names, ", "));
}

bool one_network(const Placement& placement, const std::vector<int>& pes) {
  const auto host = [&](int pe) -> const PeHost& {
    return placement.hosts[static_cast<std::size_t>(pe)];
  };
  return std::all_of(pes.begin(), pes.end(), [&](int pe) {
    return host(pe).machine_id == host(pes[0]).machine_id &&
           host(pe).network_namespace == host(pes[0]).network_namespace;
  });
}

bool one_network(const Placement& placement) {
  std::vector<int> all(placement.hosts.size());
  std::iota(all.begin(), all.end(), 0);
  return one_network(placement, all);
}

std::optional<OtherProgram> find_other_program(const std::vector<std::string>& programs) {
  std::unordered_map<std::string, std::size_t> count;
  for (const std::string& program : programs)
    ++count[program];
  if (count.size() < 2)
    return std::nullopt;
  // Returns the first of several maxima.
  const auto reference = std::max_element(programs.begin(), programs.end(),
                                          [&](const std::string& left, const std::string& right) {
                                            return count[left] < count[right];
                                          });
  const auto other =
      std::find_if(programs.begin(), programs.end(),
                   [&](const std::string& program) { return program != *reference; });
  return OtherProgram{static_cast<int>(other - programs.begin()),
                      static_cast<int>(reference - programs.begin())};
}

namespace {

/// The PEs with this local rank, one of each node that has enough PEs.
std::vector<int> pes_of_local_rank(const Placement& placement, int local_pe) {
  std::vector<int> pes;
  for (const std::vector<int>& node : placement.node_pes)
    if (static_cast<std::size_t>(local_pe) < node.size())
      pes.push_back(node[static_cast<std::size_t>(local_pe)]);
  return pes;
}

} // namespace

std::unique_ptr<Bootstrap> join_rail(Bootstrap& parent, const Placement& placement,
                                     const Options& options, const Deadline& deadline) {
  const std::vector<int> pes = pes_of_local_rank(placement, placement.my_local_pe());
  const InterfaceFilter interfaces{options.text("BOOTSTRAP_UID_SOCK_IFNAME"),
                                   options.text("BOOTSTRAP_UID_SOCK_FAMILY")};
  UidArguments arguments;
  arguments.interfaces = interfaces;
  std::string id;
  if (pes[0] == placement.pe) {
    // The id, with the secret in it, is sent over the network unencrypted, so the PEs use that
    // secret only after mixing it.
    const Secret said = random_secret(), secret = parent.mix_secret(said);
    arguments.rendezvous = one_network(placement, pes)
                               ? Rendezvous::start_local(deadline.remaining_s(), secret)
                               : Rendezvous::start(interfaces, deadline.remaining_s(), secret);
    UniqueId sent = arguments.rendezvous->id();
    sent.secret = said;
    id = sent.text();
  }
  const std::vector<std::string> ids = allgather_text(parent, id, deadline);
  arguments.id = UniqueId::parse(ids[static_cast<std::size_t>(pes[0])]);
  arguments.id.secret = parent.mix_secret(arguments.id.secret);
  arguments.rank = static_cast<int>(std::find(pes.begin(), pes.end(), placement.pe) - pes.begin());
  arguments.size = static_cast<int>(pes.size());
  return join_uid(std::move(arguments), deadline);
}

} // namespace shmemctl
