#include "src/instruments/inspect/rdma_resources.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>

#include "src/base/text.h"
#include "src/instruments/inspect/netlink.h"

namespace shmemctl::inspect {

namespace {

/// The commands and attributes of one kind of resource.
struct KindRow {
  RdmaResource kind;
  const char* name;
  int command, table, entry;
};
constexpr std::array<KindRow, 4> kind_rows = {{
    {RdmaResource::queue_pair, "qp", RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP,
     RDMA_NLDEV_ATTR_RES_QP_ENTRY},
    {RdmaResource::completion_queue, "cq", RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ,
     RDMA_NLDEV_ATTR_RES_CQ_ENTRY},
    {RdmaResource::memory_region, "mr", RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR,
     RDMA_NLDEV_ATTR_RES_MR_ENTRY},
    {RdmaResource::connection, "cm_id", RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID,
     RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY},
}};

const KindRow& row_of(RdmaResource kind) {
  return *std::find_if(kind_rows.begin(), kind_rows.end(),
                       [kind](const KindRow& row) { return row.kind == kind; });
}

/// ib_qp_type of the kernel.
std::string type_name(unsigned type) {
  static constexpr std::array names = {
      "SMI",           "GSI",     "RC",         "UC",      "UD",     "RAW_IPV6",
      "RAW_ETHERTYPE", "UNKNOWN", "RAW_PACKET", "XRC_INI", "XRC_TGT"};
  if (type == 0xff)
    return "DRIVER";
  return type < names.size() ? names[type] : "UNKNOWN";
}

/// ib_qp_state.
std::string state_name(unsigned state) {
  static constexpr std::array names = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state < names.size() ? names[state] : "UNKNOWN";
}

/// rdma_cm_state.
std::string connection_state_name(unsigned state) {
  static constexpr std::array names = {
      "IDLE",       "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY",    "ROUTE_RESOLVED", "CONNECT",
      "DISCONNECT", "ADDR_BOUND", "LISTEN",        "DEVICE_REMOVAL", "DESTROYING"};
  return state < names.size() ? names[state] : "UNKNOWN";
}

/// The address in a sockaddr_storage; "" for another family, or no address.
std::string address_text(std::string_view bytes) {
  sa_family_t family = 0;
  if (bytes.size() < sizeof family)
    return {};
  std::memcpy(&family, bytes.data(), sizeof family);
  char shown[INET6_ADDRSTRLEN] = "";
  if (family == AF_INET && bytes.size() >= sizeof(sockaddr_in)) {
    sockaddr_in address{};
    std::memcpy(&address, bytes.data(), sizeof address);
    ::inet_ntop(AF_INET, &address.sin_addr, shown, sizeof shown);
    return fmt::format("{}:{}", shown, ntohs(address.sin_port));
  }
  if (family == AF_INET6 && bytes.size() >= sizeof(sockaddr_in6)) {
    sockaddr_in6 address{};
    std::memcpy(&address, bytes.data(), sizeof address);
    ::inet_ntop(AF_INET6, &address.sin6_addr, shown, sizeof shown);
    return fmt::format("[{}]:{}", shown, ntohs(address.sin6_port));
  }
  return {};
}

/// One resource of any kind, before it is added to its process.
struct Entry {
  std::optional<int> pid;
  std::string device;
  int port = 0;
  std::string type, state, local, remote;
  std::uint32_t number = 0;
  std::optional<std::uint32_t> remote_number;
  std::uint64_t length_bytes = 0;
};

constexpr int max_port = 255;

void add_entry(RdmaResource kind, Entry entry, RdmaResources& to) {
  if (!entry.pid || *entry.pid <= 0)
    return;
  RdmaUse& use = to.by_pid[*entry.pid];
  switch (kind) {
  case RdmaResource::queue_pair:
    use.queue_pairs.push_back({std::move(entry.device), entry.port, std::move(entry.type),
                               std::move(entry.state), entry.number, entry.remote_number});
    break;
  case RdmaResource::completion_queue:
    ++use.completion_queues;
    break;
  case RdmaResource::memory_region:
    ++use.memory_regions;
    // The length of a region that covers the whole address space (on-demand paging) is meaningless.
    if (entry.length_bytes < std::uint64_t{1} << 48)
      use.memory_bytes += entry.length_bytes;
    break;
  case RdmaResource::connection:
    use.connections.push_back({std::move(entry.device), entry.port, std::move(entry.state),
                               std::move(entry.local), std::move(entry.remote)});
    break;
  }
}

Entry parse_entry(RdmaResource kind, std::string_view bytes, const std::string& device) {
  Entry entry;
  entry.device = device;
  each_attribute(bytes, [&entry, kind](int type, std::string_view value) {
    const auto number = attribute_u32(value);
    switch (type) {
    case RDMA_NLDEV_ATTR_RES_PID:
      if (number && *number <= 1U << 30)
        entry.pid = static_cast<int>(*number);
      break;
    case RDMA_NLDEV_ATTR_PORT_INDEX:
      if (number && *number <= static_cast<unsigned>(max_port))
        entry.port = static_cast<int>(*number);
      break;
    case RDMA_NLDEV_ATTR_RES_LQPN:
      entry.number = number.value_or(0);
      break;
    case RDMA_NLDEV_ATTR_RES_RQPN:
      entry.remote_number = number;
      break;
    case RDMA_NLDEV_ATTR_RES_TYPE:
      if (const auto code = attribute_u8(value))
        entry.type = type_name(*code);
      break;
    case RDMA_NLDEV_ATTR_RES_STATE:
      if (const auto code = attribute_u8(value))
        entry.state =
            kind == RdmaResource::connection ? connection_state_name(*code) : state_name(*code);
      break;
    case RDMA_NLDEV_ATTR_RES_MRLEN:
      entry.length_bytes = attribute_u64(value).value_or(0);
      break;
    case RDMA_NLDEV_ATTR_RES_SRC_ADDR:
      entry.local = address_text(value);
      break;
    case RDMA_NLDEV_ATTR_RES_DST_ADDR:
      entry.remote = address_text(value);
      break;
    case RDMA_NLDEV_ATTR_DEV_NAME: // an rdma_cm_id names its device itself, and may have none
      entry.device = attribute_text(value);
      break;
    default:
      break;
    }
  });
  return entry;
}

template <class T>
std::optional<T> number_in(const std::string& text, long long least, long long most) {
  const auto value = parse_integer(text);
  return value && *value >= least && *value <= most ? std::optional<T>(static_cast<T>(*value))
                                                    : std::nullopt;
}

/// "mlx5_0/1"; the port may be "-".
void set_link(const std::string& text, Entry& entry) {
  const std::size_t slash = text.rfind('/');
  entry.device = text.substr(0, slash);
  if (slash != std::string::npos)
    entry.port = number_in<int>(text.substr(slash + 1), 0, max_port).value_or(0);
}

Entry parse_line(const std::string& line) {
  Entry entry;
  const std::vector<std::string> words = split_blanks(line);
  constexpr long long max_u32 = 0xffffffffLL;
  // A program's name may contain blanks, so the words are not always pairs; the first occurrence of
  // each key counts.
  std::vector<std::string> seen;
  for (std::size_t at = 0; at + 1 < words.size(); ++at) {
    const std::string &name = words[at], &value = words[at + 1];
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      continue;
    if (name == "link" || name == "dev")
      set_link(value, entry);
    else if (name == "pid")
      entry.pid = number_in<int>(value, 1, 1 << 30);
    else if (name == "lqpn")
      entry.number = number_in<std::uint32_t>(value, 0, max_u32).value_or(0);
    else if (name == "rqpn")
      entry.remote_number = number_in<std::uint32_t>(value, 0, max_u32);
    else if (name == "type")
      entry.type = value;
    else if (name == "state")
      entry.state = value;
    else if (name == "mrlen")
      entry.length_bytes = number_in<std::uint64_t>(value, 0, 1LL << 62).value_or(0);
    else if (name == "src-addr")
      entry.local = value;
    else if (name == "dst-addr")
      entry.remote = value;
    else
      continue;
    seen.push_back(name);
    ++at;
  }
  return entry;
}

std::string link_text(const std::string& device, int port) {
  return device + "/" + (port > 0 ? std::to_string(port) : "-");
}

int message_type(int command) {
  return RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
}

std::string system_message(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (error_number == EPERM || error_number == EACCES)
    text += ": needs root with CAP_NET_ADMIN";
  else if (error_number == EPROTONOSUPPORT || error_number == EOPNOTSUPP ||
           error_number == EINVAL || error_number == ENOENT)
    text += ": this kernel does not list them";
  return text;
}

std::vector<RdmaDeviceIndex> ask_devices(NetlinkSocket& socket, RdmaResources& to) {
  std::vector<RdmaDeviceIndex> devices;
  const NetlinkAnswer answer = socket.dump(message_type(RDMA_NLDEV_CMD_GET), {});
  for (const std::string& body : answer.bodies)
    if (auto device = parse_rdma_device(body))
      devices.push_back(std::move(*device));
  if (answer.error_number != 0)
    to.skipped.push_back({"RDMA netlink", system_message(answer.error_number)});
  else if (devices.empty())
    to.skipped.push_back({"RDMA netlink", "no device belongs to this network namespace"});
  return devices;
}

RdmaResources ask_kernel() {
  RdmaResources resources;
  NetlinkSocket socket(NETLINK_RDMA);
  const std::vector<RdmaDeviceIndex> devices = ask_devices(socket, resources);
  bool listed = !devices.empty();
  for (const KindRow& row : kind_rows)
    for (const RdmaDeviceIndex& device : devices) {
      const std::string_view index(reinterpret_cast<const char*>(&device.index),
                                   sizeof device.index);
      const NetlinkAnswer answer = socket.dump(message_type(row.command),
                                               netlink_attribute(RDMA_NLDEV_ATTR_DEV_INDEX, index));
      for (const std::string& body : answer.bodies)
        add_rdma_message(row.kind, body, resources);
      if (answer.error_number == 0)
        continue;
      listed = listed && row.kind != RdmaResource::queue_pair;
      resources.not_listed.push_back(row.kind);
      resources.skipped.push_back({fmt::format("rdma resource {} of {}", row.name, device.name),
                                   system_message(answer.error_number)});
    }
  resources.known = listed;
  return resources;
}

RdmaResources read_recorded_resources(const Sysroot& sysroot) {
  RdmaResources resources;
  std::vector<Skipped> missing;
  for (const KindRow& row : kind_rows) {
    constexpr std::size_t max_bytes = 64U << 20;
    const auto text = sysroot.read(rdma_record_path(row.kind), max_bytes);
    if (!text) {
      resources.not_listed.push_back(row.kind);
      missing.push_back({fmt::format("rdma resource {}", row.name),
                         "not in the recording: " + rdma_record_path(row.kind)});
      continue;
    }
    add_rdma_text(row.kind, *text, resources);
    resources.known = resources.known || row.kind == RdmaResource::queue_pair;
  }
  // Without any of them, nobody recorded resources, as in a copy of /sys.
  if (missing.size() < std::size(kind_rows))
    resources.skipped = std::move(missing);
  return resources;
}

} // namespace

bool QueuePair::connected() const {
  return state == "RTR" || state == "RTS" || state == "SQD" || state == "SQE";
}

RdmaUse RdmaResources::of(int pid) const {
  const auto found = by_pid.find(pid);
  RdmaUse use = found == by_pid.end() ? RdmaUse() : found->second;
  for (const RdmaResource kind : not_listed) {
    use.completion_queues_known &= kind != RdmaResource::completion_queue;
    use.memory_regions_known &= kind != RdmaResource::memory_region;
  }
  return use;
}

const char* to_string(RdmaResource kind) {
  return row_of(kind).name;
}

void add_rdma_message(RdmaResource kind, std::string_view body, RdmaResources& to) {
  const KindRow& row = row_of(kind);
  std::string device;
  std::vector<std::string_view> tables;
  each_attribute(body, [&](int type, std::string_view value) {
    if (type == RDMA_NLDEV_ATTR_DEV_NAME)
      device = attribute_text(value);
    else if (type == row.table)
      tables.push_back(value);
  });
  for (const std::string_view table : tables)
    each_attribute(table, [&](int type, std::string_view value) {
      if (type == row.entry)
        add_entry(kind, parse_entry(kind, value, device), to);
    });
}

std::optional<RdmaDeviceIndex> parse_rdma_device(std::string_view body) {
  RdmaDeviceIndex device;
  bool has_index = false;
  each_attribute(body, [&](int type, std::string_view value) {
    if (type == RDMA_NLDEV_ATTR_DEV_NAME)
      device.name = attribute_text(value);
    if (const auto index = attribute_u32(value); index && type == RDMA_NLDEV_ATTR_DEV_INDEX) {
      device.index = *index;
      has_index = true;
    }
  });
  return has_index && !device.name.empty() ? std::optional(std::move(device)) : std::nullopt;
}

void add_rdma_text(RdmaResource kind, std::string_view text, RdmaResources& to) {
  for (const std::string& line : split(text, '\n'))
    add_entry(kind, parse_line(line), to);
}

std::string rdma_text(RdmaResource kind, const RdmaResources& resources) {
  std::string text;
  for (const auto& process : resources.by_pid) {
    const int pid = process.first;
    const RdmaUse& use = process.second;
    switch (kind) {
    case RdmaResource::queue_pair:
      for (const QueuePair& pair : use.queue_pairs)
        text += fmt::format("link {} lqpn {}{} type {} state {} pid {}\n",
                            link_text(pair.device, pair.port), pair.number,
                            pair.remote_number ? fmt::format(" rqpn {}", *pair.remote_number)
                                               : std::string(),
                            pair.type.empty() ? "UNKNOWN" : pair.type,
                            pair.state.empty() ? "UNKNOWN" : pair.state, pid);
      break;
    case RdmaResource::completion_queue:
      for (std::size_t at = 0; at < use.completion_queues; ++at)
        text += fmt::format("dev - cqn {} pid {}\n", at, pid);
      break;
    case RdmaResource::memory_region:
      // Only the sum of the lengths is known; it is written with the first region.
      for (std::size_t at = 0; at < use.memory_regions; ++at)
        text +=
            fmt::format("dev - mrn {} mrlen {} pid {}\n", at, at == 0 ? use.memory_bytes : 0, pid);
      break;
    case RdmaResource::connection:
      for (const RdmaConnection& connection : use.connections)
        text += fmt::format(
            "link {} state {} pid {}{}{}\n", link_text(connection.device, connection.port),
            connection.state.empty() ? "UNKNOWN" : connection.state, pid,
            connection.local.empty() ? std::string() : " src-addr " + connection.local,
            connection.remote.empty() ? std::string() : " dst-addr " + connection.remote);
      break;
    }
  }
  return text;
}

std::string rdma_record_path(RdmaResource kind) {
  return std::string("/shmemctl/rdma/") + to_string(kind);
}

RdmaResources read_rdma_resources(const Sysroot& sysroot) {
  if (!sysroot.live())
    return read_recorded_resources(sysroot);
  // Without a device no process has a queue pair. Opening the socket could load a kernel module.
  return sysroot.list("/sys/class/infiniband").empty() ? RdmaResources{} : ask_kernel();
}

} // namespace shmemctl::inspect
