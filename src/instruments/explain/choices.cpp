#include "src/instruments/explain/choices.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/base/text.h"
#include "src/instruments/explain/log_lines.h"

namespace shmemctl::explain {

namespace {

constexpr std::size_t max_choices = 256; ///< choices kept for one process
constexpr std::size_t max_listed = 1024; ///< devices of one list
constexpr std::size_t max_name_bytes = 128;

/// The text behind `word`; empty if the line does not contain it.
std::optional<std::string_view> behind(std::string_view line, std::string_view word) {
  const std::size_t found = line.find(word);
  if (found == std::string_view::npos)
    return std::nullopt;
  return line.substr(found + word.size());
}

std::optional<int> number_behind(std::string_view line, std::string_view word) {
  std::optional<std::string_view> rest = behind(line, word);
  return rest ? take_number(*rest) : std::nullopt;
}

/// The text up to the first character of `ends`.
std::string word_until(std::string_view text, std::string_view ends) {
  return std::string(text.substr(0, std::min(text.find_first_of(ends), max_name_bytes)));
}

/// Sets the GID index of a choice that has none, if other lines of the log tell it.
void fill_gid(const ProcessSetup& setup, Choice& choice) {
  if (choice.gid_index)
    return;
  const bool libfabric =
      choice.library == "libfabric" || starts_with(choice.transport, "libfabric");
  if (libfabric) {
    // An EFA port has only the first GID, and the provider uses no other one.
    if (setup.uses_efa && ends_with(choice.transport, "efa"))
      choice.gid_index = 0;
  } else if (choice.library == "NVSHMEM") {
    choice.gid_index = setup.nvshmem_gid;
  } else if (choice.library == "NCCL" && choice.number && starts_with(choice.transport, "NET/IB")) {
    const auto found = setup.gid_by_nccl_device.find(*choice.number);
    if (found != setup.gid_by_nccl_device.end())
      choice.gid_index = found->second;
  } else if (choice.library == "UCX") {
    const auto found = setup.gid_by_ucx_port.find({choice.device, choice.port.value_or(0)});
    if (found != setup.gid_by_ucx_port.end())
      choice.gid_index = found->second;
  }
}

void add(ProcessSetup& setup, const Place& place, Choice choice) {
  for (Choice& known : setup.choices)
    if (known.library == choice.library && known.transport == choice.transport &&
        known.device == choice.device && known.port == choice.port &&
        known.by_rank == choice.by_rank) {
      ++known.lines;
      if (choice.gpu_direct)
        known.gpu_direct = known.gpu_direct.value_or(true) && *choice.gpu_direct;
      return;
    }
  if (setup.choices.size() == max_choices)
    return;
  choice.first = place;
  choice.lines = 1;
  setup.choices.push_back(std::move(choice));
}

// ---- NCCL ----------------------------------------------------------------------------------

/// " [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", " [0]eth0:10.0.0.1<0>".
void read_nccl_list(std::string_view rest, bool sockets, ProcessSetup& setup) {
  if (const std::size_t end = rest.find("; OOB"); end != std::string_view::npos)
    rest = rest.substr(0, end);
  setup.nccl_devices.clear();
  for (const std::string& word : split_blanks(rest)) {
    std::string_view left = word;
    if (left.empty() || left.front() != '[')
      continue;
    left.remove_prefix(1);
    const std::optional<int> index = take_number(left);
    if (!index || left.empty() || left.front() != ']')
      continue; // [RO]: relaxed ordering
    left.remove_prefix(1);
    ListedDevice device;
    device.name = word_until(left, ":/");
    if (const std::size_t colon = left.find(':'); colon != std::string_view::npos && !sockets) {
      std::string_view port = left.substr(colon + 1);
      device.port = take_number(port);
    }
    if (const std::size_t slash = left.find('/'); slash != std::string_view::npos && !sockets)
      device.link = word_until(left.substr(slash + 1), "/;");
    if (!device.name.empty() && setup.nccl_devices.size() < max_listed)
      setup.nccl_devices[*index] = std::move(device);
  }
}

/// "[4] name=mlx5_0+mlx5_1 speed=400000 ndevs=2": NICs that NCCL uses as one.
void read_virtual_device(std::string_view rest, ProcessSetup& setup) {
  const std::optional<int> index = number_behind(rest, "[");
  const auto name = behind(rest, "name=");
  if (!index || !name || setup.nccl_devices.size() >= max_listed)
    return;
  setup.nccl_devices[*index] = {word_until(*name, " \t"), std::nullopt, ""};
}

/// "comm 0x1 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 5d000 commId 0x2 - Init START".
void read_nccl_rank(std::string_view body, ProcessSetup& setup) {
  const std::optional<int> rank = number_behind(body, " rank ");
  std::optional<int> ranks = number_behind(body, " nranks ");
  if (!ranks)
    ranks = number_behind(body, " nRanks ");
  if (!rank || !ranks || *rank >= *ranks)
    return;
  if (setup.nranks.value_or(0) < *ranks) { // smaller communicators have their own ranks
    setup.rank = rank;
    setup.nranks = ranks;
  }
  if (const auto device = number_behind(body, " cudaDev "))
    setup.cuda_device = device;
  if (const auto bus = behind(body, " busId ")) {
    // NCCL prints the address without separators: 5d000 is 0000:5d:00.0.
    std::uint64_t packed = 0;
    const std::string digits = word_until(*bus, " \t,");
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), packed, 16);
    if (error == std::errc() && end == digits.data() + digits.size() && !digits.empty()) {
      PciAddress address;
      address.domain = static_cast<std::uint32_t>(packed >> 20);
      address.bus = static_cast<std::uint8_t>(packed >> 12);
      address.device = static_cast<std::uint8_t>((packed >> 4) & 0x1f);
      address.function = static_cast<std::uint8_t>(packed & 0x7);
      setup.gpu = address;
    }
  }
}

/// "8[0] -> 0[0] [send] via NET/IB/0(3)/GDRDMA/Shared": the path of a channel.
void read_nccl_channel(std::string_view body, const Place& place, ProcessSetup& setup) {
  const auto path = behind(body, " via ");
  if (!path)
    return;
  Choice choice;
  choice.library = "NCCL";
  const std::string words = word_until(*path, "\r\n\t");
  if (!starts_with(words, "NET/")) {
    // "P2P/CUMEM/read", "SHM/direct/direct": only the kind is kept, not how it copies.
    const std::vector<std::string> parts = split(words, '/');
    choice.transport = parts.size() > 1 ? parts[0] + "/" + word_until(parts[1], " ") : parts[0];
    if (starts_with(choice.transport, "P2P") || starts_with(choice.transport, "SHM"))
      add(setup, place, std::move(choice));
    return;
  }
  // The name of a plugin may hold blanks: "NET/AWS Libfabric/0/GDRDMA".
  const std::size_t slash = words.find('/', 4);
  if (slash == std::string::npos)
    return;
  choice.transport = words.substr(0, slash);
  std::string_view rest = std::string_view(words).substr(slash + 1);
  const std::optional<int> device = take_number(rest);
  if (!device)
    return;
  if (!rest.empty() && rest.front() == '(') {
    rest.remove_prefix(1);
    const std::optional<int> proxy = take_number(rest);
    if (proxy && proxy != setup.rank)
      choice.by_rank = proxy;
  }
  choice.gpu_direct = rest.find("/GDRDMA") != std::string_view::npos;
  choice.number = device;
  const auto listed = setup.nccl_devices.find(*device);
  if (listed != setup.nccl_devices.end()) {
    choice.device = listed->second.name;
    choice.port = listed->second.port;
    choice.link = listed->second.link;
  } else {
    choice.device = "device " + std::to_string(*device);
  }
  add(setup, place, std::move(choice));
}

/// "NET/IB: ncclIbConnect: Send 0 IbDev 2 Port 1 qp_num 77 mtu 5 GID 3 (80FE/...) ...".
void read_nccl_qp(std::string_view body, ProcessSetup& setup) {
  const std::optional<int> device = number_behind(body, "IbDev ");
  const std::optional<int> gid = number_behind(body, " GID ");
  if (device && gid && setup.gid_by_nccl_device.size() < max_listed)
    setup.gid_by_nccl_device[*device] = *gid;
}

// ---- NVSHMEM -------------------------------------------------------------------------------

/// "... - device id=0 (of 8), name=mlx5_0, num_ports=1".
void read_nvshmem_name(std::string_view body, ProcessSetup& setup) {
  const std::optional<int> id = number_behind(body, "device id=");
  const auto name = behind(body, "name=");
  if (id && name && setup.nvshmem_names.size() < max_listed)
    setup.nvshmem_names[*id] = word_until(*name, ", \t");
}

/// "Ordered list of devices for assignment - idx=1 (of 8), device id=3, port_num=1".
void read_nvshmem_order(std::string_view body, ProcessSetup& setup) {
  const std::optional<int> index = number_behind(body, "idx=");
  const std::optional<int> id = number_behind(body, "device id=");
  if (!index || !id || setup.nvshmem_devices.size() >= max_listed)
    return;
  setup.nvshmem_devices[*index] = {"device " + std::to_string(*id),
                                   number_behind(body, "port_num="), ""};
}

/// "NVSHMEM_ENABLE_NIC_PE_MAPPING = 0, device 0 setting dev_id = 2".
void read_nvshmem_device(std::string_view body, const Place& place, ProcessSetup& setup) {
  const std::optional<int> index = number_behind(body, "setting dev_id = ");
  if (!index)
    return;
  Choice choice;
  choice.library = "NVSHMEM";
  choice.number = index;
  choice.transport = "remote"; // until name_devices()
  const auto listed = setup.nvshmem_devices.find(*index);
  choice.device = listed == setup.nvshmem_devices.end() ? "device " + std::to_string(*index)
                                                        : listed->second.name;
  if (listed != setup.nvshmem_devices.end())
    choice.port = listed->second.port;
  add(setup, place, std::move(choice));
}

/// "Successfully initialized the transport: IBGDA. It will be used for device-side ...". The NIC is
/// named before or after it.
void read_nvshmem_transport(std::string_view rest, ProcessSetup& setup) {
  const std::string name = word_until(rest, " .\t\r");
  if (!name.empty())
    setup.nvshmem_transport = name;
}

/// "Selected provider efa, fabric efa, nic rdmap0s0, hmem yes".
void read_libfabric_provider(std::string_view rest, const Place& place, ProcessSetup& setup) {
  Choice choice;
  choice.library = "NVSHMEM";
  choice.transport = "libfabric " + word_until(rest, ", \t");
  if (const auto nic = behind(rest, ", nic "))
    choice.device = word_until(*nic, ", \t");
  if (const auto hmem = behind(rest, ", hmem "))
    choice.gpu_direct = starts_with(*hmem, "yes");
  add(setup, place, std::move(choice));
}

// ---- UCX and others ------------------------------------------------------------------------

/// "tag(self/memory rc_mlx5/mlx5_0:1)", "rma(rc_mlx5/mlx5_0:1;tcp/eth0)": the transports, each with
/// its device.
void read_ucx_lanes(std::string_view rest, const Place& place, ProcessSetup& setup) {
  constexpr std::array<std::string_view, 7> features = {"tag(",    "rma(", "amo(",   "am(",
                                                        "stream(", "p2p(", "device("};
  for (const std::string_view feature : features) {
    auto lanes = behind(rest, feature);
    if (!lanes)
      continue;
    std::string text(lanes->substr(0, lanes->find(')')));
    std::replace(text.begin(), text.end(), ';', ' ');
    for (const std::string& lane : split_blanks(text)) {
      const std::size_t slash = lane.find('/');
      if (slash == std::string::npos || slash == 0 || lane.size() > max_name_bytes)
        continue;
      Choice choice;
      choice.library = "UCX";
      choice.transport = lane.substr(0, slash);
      std::string_view device = std::string_view(lane).substr(slash + 1);
      device = device.substr(0, device.find('/')); // without "/path0"
      if (const std::size_t colon = device.find(':'); colon != std::string_view::npos) {
        std::string_view port = device.substr(colon + 1);
        choice.port = take_number(port);
        device = device.substr(0, colon);
      }
      if (device != "memory" && device != "cuda") // shared memory and CUDA have no NIC
        choice.device = std::string(device);
      add(setup, place, std::move(choice));
    }
  }
}

/// "mlx5_0:1 using gid_index=3 ver=2 addr_family=2", with UCX_LOG_LEVEL=debug.
void read_ucx_gid(std::string_view body, ProcessSetup& setup) {
  constexpr std::string_view words = " using gid_index=";
  const std::size_t at = body.find(words);
  if (at == std::string_view::npos)
    return;
  const std::string_view before = body.substr(0, at);
  const std::string_view device = before.substr(before.find_last_of(" \t") + 1); // npos + 1 is 0
  const std::size_t colon = device.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > max_name_bytes)
    return;
  std::string_view number = device.substr(colon + 1), rest = body.substr(at + words.size());
  const std::optional<int> port = take_number(number), gid = take_number(rest);
  if (!port || !gid || setup.gid_by_ucx_port.size() >= max_listed)
    return;
  setup.gid_by_ucx_port[{std::string(device.substr(0, colon)), *port}] = *gid;
}

/// "  NVSHMEM_IB_GID_INDEX         3 (type: int, default: -1)", with NVSHMEM_INFO=1. -1 means that
/// NVSHMEM chooses itself.
void read_nvshmem_gid(std::string_view rest, ProcessSetup& setup) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::optional<int> gid = take_number(rest);
  if (!gid || !starts_with(rest, " (type: "))
    return;
  setup.nvshmem_gid = gid;
}

void read_named_transport(const char* library, std::string transport, const Place& place,
                          ProcessSetup& setup) {
  if (transport.empty())
    return;
  Choice choice;
  choice.library = library;
  choice.transport = std::move(transport);
  add(setup, place, std::move(choice));
}

/// Positions in choice_words().
enum Word : unsigned {
  nccl_ib_list,
  nccl_socket_list,
  nccl_virtual_device,
  nccl_rank,
  nccl_rank_v2,
  nccl_via,
  nccl_qp,
  nccl_network,
  nvshmem_name,
  nvshmem_order,
  nvshmem_device,
  nvshmem_pe,
  nvshmem_transport,
  nvshmem_provider,
  ofi_provider,
  ucx_ep_cfg,
  ucx_cfg,
  ompi_pml,
  opened_fabric,
  ucx_gid,
  nvshmem_gid,
  efa_address
};

} // namespace

const std::vector<std::string>& choice_words() {
  static const std::vector<std::string> words = {
      "NET/IB : Using [",
      "NET/Socket : Using [",
      "Made virtual device [",
      " nranks ",
      " nRanks ",
      " via ",
      " IbDev ",
      "Using network ",
      "Enumerated IB devices in the system - device id=",
      "Ordered list of devices for assignment - idx=",
      "setting dev_id = ",
      ") affinity to ",
      "Successfully initialized the transport: ",
      "NVSHMEM INFO Selected provider ",
      "NET/OFI Selected provider is ",
      "ep_cfg[",
      "-node cfg#",
      "select: component ",
      "Opened fabric: ",
      " using gid_index=",
      "  NVSHMEM_IB_GID_INDEX ",
      "EP addr: GID[",
  };
  return words;
}

void read_choice(std::string_view body, std::uint64_t seen, const Place& place,
                 ProcessSetup& setup) {
  const auto has = [seen](Word word) { return (seen >> word & 1) != 0; };
  const auto rest = [body](Word word) {
    return behind(body, choice_words()[word]).value_or(std::string_view());
  };
  if (has(nccl_ib_list) || has(nccl_socket_list)) {
    const auto list = behind(body, " : Using");
    if (list)
      read_nccl_list(*list, has(nccl_socket_list), setup);
  } else if (has(nccl_virtual_device)) {
    if (const auto device = behind(body, "Made virtual device "))
      read_virtual_device(*device, setup);
  } else if (has(nccl_rank) || has(nccl_rank_v2)) {
    read_nccl_rank(body, setup);
  } else if (has(nccl_via) && body.find("Channel ") != std::string_view::npos) {
    read_nccl_channel(body, place, setup);
  } else if (has(nccl_qp)) {
    read_nccl_qp(body, setup);
  } else if (has(nccl_network)) {
    setup.network = word_until(rest(nccl_network), "\t\r\n");
  } else if (has(nvshmem_order)) {
    read_nvshmem_order(body, setup);
  } else if (has(nvshmem_name)) {
    read_nvshmem_name(body, setup);
  } else if (has(nvshmem_device)) {
    read_nvshmem_device(body, place, setup);
  } else if (has(nvshmem_pe)) {
    if (const auto pe = number_behind(body, "NVSHMEM INFO PE "); pe && !setup.rank)
      setup.rank = pe;
  } else if (has(nvshmem_transport)) {
    read_nvshmem_transport(rest(nvshmem_transport), setup);
  } else if (has(nvshmem_provider)) {
    read_libfabric_provider(rest(nvshmem_provider), place, setup);
  } else if (has(ofi_provider)) {
    read_named_transport("aws-ofi-nccl", "libfabric " + word_until(rest(ofi_provider), ", \t"),
                         place, setup);
  } else if (has(ucx_ep_cfg) || has(ucx_cfg)) {
    read_ucx_lanes(rest(has(ucx_cfg) ? ucx_cfg : ucx_ep_cfg), place, setup);
  } else if (has(ompi_pml)) {
    if (const std::string name = word_until(rest(ompi_pml), " \t\r");
        rest(ompi_pml).substr(name.size()) == " selected")
      read_named_transport("Open MPI", "component " + name, place, setup);
  } else if (has(opened_fabric)) {
    read_named_transport("libfabric", word_until(rest(opened_fabric), " \t\r"), place, setup);
  } else if (has(ucx_gid)) {
    read_ucx_gid(body, setup);
  } else if (has(nvshmem_gid)) {
    read_nvshmem_gid(rest(nvshmem_gid), setup);
  } else if (has(efa_address)) {
    setup.uses_efa = true;
  }
}

void name_devices(ProcessSetup& setup) {
  constexpr std::string_view unnamed = "device ";
  for (auto& [index, listed] : setup.nvshmem_devices) {
    if (!starts_with(listed.name, unnamed))
      continue;
    const auto id = parse_integer(listed.name.substr(unnamed.size()));
    const auto name = setup.nvshmem_names.find(static_cast<int>(id.value_or(-1)));
    if (name != setup.nvshmem_names.end())
      listed.name = name->second;
  }
  for (Choice& choice : setup.choices) {
    if (choice.library == "NVSHMEM" && choice.transport == "remote" &&
        !setup.nvshmem_transport.empty())
      choice.transport = setup.nvshmem_transport;
    fill_gid(setup, choice);
    const auto& listed = choice.library == "NCCL" ? setup.nccl_devices : setup.nvshmem_devices;
    if (!choice.number || !starts_with(choice.device, "device "))
      continue;
    const auto found = listed.find(*choice.number);
    if (found == listed.end())
      continue;
    choice.device = found->second.name;
    choice.port = found->second.port;
    choice.link = found->second.link;
  }
}

} // namespace shmemctl::explain
