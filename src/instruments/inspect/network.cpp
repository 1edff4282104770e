#include "src/instruments/inspect/network.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/text.h"

namespace shmemctl::inspect {

namespace {

/// Less traffic than this is attributed to start-up and control connections.
constexpr double min_load_Bps = 10e6;

std::optional<std::uint64_t> counter(const Sysroot& sysroot, const std::string& path) {
  const auto value = sysroot.read_integer(path);
  return value && *value >= 0 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<std::uint64_t> words_to_bytes(std::optional<std::uint64_t> words) {
  constexpr std::uint64_t word_bytes = 4;
  return words ? std::optional(*words * word_bytes) : std::nullopt;
}

void read_rdma(const Sysroot& sysroot, std::vector<PortBytes>& ports) {
  const std::string root = "/sys/class/infiniband";
  for (const std::string& device : sysroot.list(root))
    for (const std::string& number : sysroot.list(root + "/" + device + "/ports")) {
      const std::string folder = root + "/" + device + "/ports/" + number;
      PortBytes port;
      port.device = device;
      port.port = static_cast<int>(std::clamp(parse_integer(number).value_or(1), 1LL, 255LL));
      port.rdma = true;
      port.active =
          sysroot.read_line(folder + "/state").value_or("").find("ACTIVE") != std::string::npos;
      port.sent_bytes = words_to_bytes(counter(sysroot, folder + "/counters/port_xmit_data"));
      port.received_bytes = words_to_bytes(counter(sysroot, folder + "/counters/port_rcv_data"));
      if (!port.sent_bytes) { // EFA has other counters
        port.sent_bytes = counter(sysroot, folder + "/hw_counters/tx_bytes");
        port.received_bytes = counter(sysroot, folder + "/hw_counters/rx_bytes");
      }
      ports.push_back(std::move(port));
    }
}

void read_interfaces(const Sysroot& sysroot, int pid, std::vector<PortBytes>& ports) {
  const std::string path =
      pid > 0 ? "/proc/" + std::to_string(pid) + "/net/dev" : std::string("/proc/net/dev");
  for (const std::string& line : split(sysroot.read(path).value_or(""), '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos)
      continue;
    const std::string name(trim(std::string_view(line).substr(0, colon)));
    const std::vector<std::string> fields = split_blanks(std::string_view(line).substr(colon + 1));
    constexpr std::size_t received = 0, sent = 8;
    if (name == "lo" || fields.size() <= sent)
      continue;
    const auto in = parse_integer(fields[received]), out = parse_integer(fields[sent]);
    if (!in || !out || *in < 0 || *out < 0)
      continue;
    PortBytes port;
    port.device = name;
    port.active = true;
    port.received_bytes = static_cast<std::uint64_t>(*in);
    port.sent_bytes = static_cast<std::uint64_t>(*out);
    ports.push_back(std::move(port));
  }
}

std::optional<std::uint64_t> difference(std::optional<std::uint64_t> before,
                                        std::optional<std::uint64_t> after) {
  return before && after && *after >= *before ? std::optional(*after - *before) : std::nullopt;
}

double bytes_of(const PortLoad& load) {
  return static_cast<double>(load.sent_bytes.value_or(0)) +
         static_cast<double>(load.received_bytes.value_or(0));
}

std::string subject_of(const Process& process) {
  const auto rank = rank_of(process);
  return fmt::format("PID {}{}", process.pid,
                     rank ? fmt::format(" (rank {})", rank->number) : std::string());
}

bool has_connected(const RdmaUse& use) {
  return std::any_of(use.queue_pairs.begin(), use.queue_pairs.end(),
                     [](const QueuePair& pair) { return pair.connected(); });
}

bool has_network_library(const Libraries& libraries) {
  return std::any_of(libraries.begin(), libraries.end(),
                     [](const auto& library) { return library->kind->family != Family::none; });
}

/// Whether the peer is a server of the site, such as ssh, NFS or an object store. Libraries let the
/// kernel choose their ports, so a well-known port means a server.
bool is_service(const TcpConnection& connection) {
  constexpr long long first_free = 1024;
  const auto port =
      parse_integer(std::string_view(connection.remote).substr(connection.remote.rfind(':') + 1));
  return port && *port < first_free;
}

/// The connections of a process to other hosts.
struct RemoteConnections {
  std::set<std::string> peers;
  std::optional<double> bytes; ///< bytes in the window; empty if the kernel was not asked
};

RemoteConnections remote_connections(const Process& process) {
  RemoteConnections found;
  for (const TcpConnection& connection : process.connections) {
    if (connection.state != "established" || connection.local_only || is_service(connection))
      continue;
    found.peers.insert(connection.remote);
    if (connection.window_acknowledged_bytes && connection.window_received_bytes)
      found.bytes = found.bytes.value_or(0) +
                    static_cast<double>(*connection.window_acknowledged_bytes) +
                    static_cast<double>(*connection.window_received_bytes);
  }
  return found;
}

void find_fallback(const NetworkUser& user, double rdma_Bps, double other_Bps, double window_s,
                   Findings& findings) {
  if (uses_rdma(user) || !has_network_library(*user.libraries))
    return;
  const RemoteConnections remote = remote_connections(*user.process);
  const std::set<std::string>& peers = remote.peers;
  if (peers.empty())
    return; // a job on one node needs no NIC
  const bool by_connection = window_s > 0 && remote.bytes.has_value();
  const double own_Bps = by_connection ? *remote.bytes / window_s : 0;
  const bool seen =
      window_s > 0 && (by_connection ? own_Bps > min_load_Bps
                                     : other_Bps > min_load_Bps && rdma_Bps < other_Bps / 10);
  if (window_s > 0 && !seen)
    return;
  std::vector<std::string> few(
      peers.begin(), std::next(peers.begin(), static_cast<std::ptrdiff_t>(
                                                  std::min<std::size_t>(3, peers.size()))));
  std::string load = "; without --window it is not known what the connections carry";
  if (by_connection)
    load = fmt::format("; the connections carried {:.1f} MB/s", own_Bps / 1e6);
  else if (seen)
    load = fmt::format("; interfaces carried {:.1f} MB/s, RDMA ports {:.1f} MB/s", other_Bps / 1e6,
                       rdma_Bps / 1e6);
  findings.push_back(
      {"tcp-fallback", seen ? Severity::warning : Severity::info, subject_of(*user.process),
       fmt::format("it has {} to other hosts ({}) and {}, though this node has active RDMA ports{}",
                   counted(peers.size(), "TCP connection"), join(few, ", "),
                   user.rdma_devices.empty() ? "no RDMA device open"
                                             : "no connected queue pair on the RDMA devices that "
                                               "it has open (" +
                                                   join(user.rdma_devices, ", ") + ")",
                   load),
       "let the job open RDMA devices: mount /dev/infiniband into the container, and look at "
       "NCCL_NET, NCCL_IB_DISABLE, UCX_TLS and FI_PROVIDER"});
}

void find_one_of_many(const std::vector<PortLoad>& loads, double window_s, Findings& findings) {
  const PortLoad* busiest = nullptr;
  std::size_t active = 0;
  double all = 0;
  for (const PortLoad& load : loads) {
    if (!load.rdma || !load.active)
      continue;
    ++active;
    all += bytes_of(load);
    if (busiest == nullptr || bytes_of(load) > bytes_of(*busiest))
      busiest = &load;
  }
  constexpr double nearly_all = 0.9;
  if (active < 2 || window_s <= 0 || all / window_s < min_load_Bps ||
      bytes_of(*busiest) < nearly_all * all)
    return;
  const std::string port = busiest->device + ":" + std::to_string(busiest->port);
  findings.push_back(
      {"nic-one-of-many", Severity::warning, port,
       fmt::format("{} carried {:.0f}% of {:.1f} MB/s, the {} other active RDMA ports of this node "
                   "the rest",
                   port, 100 * bytes_of(*busiest) / all, all / window_s / 1e6, active - 1),
       "let each rank use the NIC next to its GPU: shmemctl topo prints the setting"});
}

/// For one direction over the active RDMA ports: the sum of the bytes, and the port with the
/// largest share.
struct Spread {
  const PortLoad* busiest = nullptr;
  std::size_t ports = 0;
  double all_bytes = 0, most_bytes = 0;
  double share() const { return all_bytes > 0 ? most_bytes / all_bytes : 0; }
};

Spread spread_of(const std::vector<PortLoad>& loads,
                 std::optional<std::uint64_t> PortLoad::*direction) {
  Spread spread;
  for (const PortLoad& load : loads) {
    if (!load.rdma || !load.active)
      continue;
    const auto bytes = static_cast<double>((load.*direction).value_or(0));
    ++spread.ports;
    spread.all_bytes += bytes;
    if (spread.busiest == nullptr || bytes > spread.most_bytes) {
      spread.busiest = &load;
      spread.most_bytes = bytes;
    }
  }
  return spread;
}

/// Adds a finding if data is sent over several ports but received nearly only by one.
void find_narrow_receive(const std::vector<PortLoad>& loads, double window_s, Findings& findings) {
  const Spread sent = spread_of(loads, &PortLoad::sent_bytes),
               received = spread_of(loads, &PortLoad::received_bytes);
  constexpr double nearly_all = 0.9, spread_out = 0.6;
  if (sent.ports < 2 || window_s <= 0 || sent.all_bytes / window_s < min_load_Bps ||
      received.all_bytes / window_s < min_load_Bps || received.share() < nearly_all ||
      sent.share() > spread_out)
    return;
  const std::string port = received.busiest->device + ":" + std::to_string(received.busiest->port);
  findings.push_back(
      {"receive-side-narrow", Severity::warning, port,
       fmt::format("{} received {:.0f}% of {:.1f} MB/s, though no port of this node sent more than "
                   "{:.0f}% of {:.1f} MB/s",
                   port, 100 * received.share(), received.all_bytes / window_s / 1e6,
                   100 * sent.share(), sent.all_bytes / window_s / 1e6),
       "let the peers send to the memory of all ranks through the NICs next to them: compare the "
       "NICs "
       "that each rank has open, and those of the peers, with shmemctl inspect --all on both "
       "nodes"});
}

/// Adds a finding if all processes that use RDMA use one device, though several are active.
void find_one_opened(const std::vector<NetworkUser>& users, const std::vector<PortLoad>& loads,
                     Findings& findings) {
  std::set<std::string> active, used;
  for (const PortLoad& load : loads)
    if (load.rdma && load.active)
      active.insert(load.device);
  std::size_t count = 0, with_queue_pairs = 0;
  for (const NetworkUser& user : users) {
    const std::vector<std::string> devices = devices_in_use(user);
    if (devices.empty())
      continue;
    ++count;
    with_queue_pairs += user.rdma != nullptr && has_connected(*user.rdma) ? 1 : 0;
    used.insert(devices.begin(), devices.end());
  }
  if (count < 2 || used.size() != 1 || active.size() < 2)
    return;
  findings.push_back(
      {"nic-one-of-many", Severity::warning, *used.begin(),
       with_queue_pairs == count
           ? fmt::format("{} processes have queue pairs only on {}, of {} RDMA devices with an "
                         "active port",
                         count, *used.begin(), active.size())
           : fmt::format("{} processes have only {} open, of {} RDMA devices with an active port",
                         count, *used.begin(), active.size()),
       "let each rank use the NIC next to its GPU: shmemctl topo prints the setting"});
}

} // namespace

std::vector<PortBytes> read_port_bytes(const Sysroot& sysroot, int pid) {
  std::vector<PortBytes> ports;
  read_rdma(sysroot, ports);
  read_interfaces(sysroot, pid, ports);
  return ports;
}

std::vector<PortLoad> load_between(const std::vector<PortBytes>& before,
                                   const std::vector<PortBytes>& after) {
  std::vector<PortLoad> loads;
  for (const PortBytes& now : after) {
    const auto then = std::find_if(before.begin(), before.end(), [&now](const PortBytes& port) {
      return port.device == now.device && port.port == now.port && port.rdma == now.rdma;
    });
    PortLoad load;
    load.device = now.device;
    load.port = now.port;
    load.rdma = now.rdma;
    load.active = now.active;
    if (then != before.end()) {
      load.sent_before = then->sent_bytes;
      load.received_before = then->received_bytes;
      load.sent_bytes = difference(then->sent_bytes, now.sent_bytes);
      load.received_bytes = difference(then->received_bytes, now.received_bytes);
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

std::vector<std::string> open_rdma_devices(const Sysroot& sysroot, const Process& process) {
  std::vector<std::string> devices;
  for (const OpenFile& file : process.devices) {
    constexpr std::string_view folder = "/dev/infiniband/";
    if (!starts_with(file.target, std::string(folder) + "uverbs"))
      continue;
    const std::string name = file.target.substr(folder.size());
    const std::string device =
        sysroot.read_line("/sys/class/infiniband_verbs/" + name + "/ibdev").value_or(name);
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  }
  std::sort(devices.begin(), devices.end(), natural_less);
  return devices;
}

bool uses_rdma(const NetworkUser& user) {
  if (user.rdma == nullptr)
    return !user.rdma_devices.empty();
  return has_connected(*user.rdma) || user.rdma->memory_regions > 0;
}

std::vector<std::string> devices_in_use(const NetworkUser& user) {
  if (user.rdma == nullptr || !has_connected(*user.rdma))
    return user.rdma_devices;
  std::vector<std::string> devices;
  for (const QueuePair& pair : user.rdma->queue_pairs)
    if (pair.connected() && std::find(devices.begin(), devices.end(), pair.device) == devices.end())
      devices.push_back(pair.device);
  std::sort(devices.begin(), devices.end(), natural_less);
  return devices;
}

Findings network_findings(const std::vector<NetworkUser>& users, const std::vector<PortLoad>& loads,
                          double window_s) {
  Findings findings;
  const bool has_rdma = std::any_of(loads.begin(), loads.end(),
                                    [](const PortLoad& load) { return load.rdma && load.active; });
  if (!has_rdma)
    return findings;
  double rdma_bytes = 0, other_bytes = 0;
  for (const PortLoad& load : loads)
    (load.rdma ? rdma_bytes : other_bytes) += bytes_of(load);
  const double seconds = window_s > 0 ? window_s : 1;
  for (const NetworkUser& user : users)
    find_fallback(user, rdma_bytes / seconds, other_bytes / seconds, window_s, findings);
  find_narrow_receive(loads, window_s, findings);
  find_one_of_many(loads, window_s, findings);
  if (findings.empty() || findings.back().id != "nic-one-of-many")
    find_one_opened(users, loads, findings);
  return findings;
}

} // namespace shmemctl::inspect
