// Checks whether the kernel and the driver create address handles for the addresses in use. IBGDA,
// DEVX and UD queue pairs need them. Each port tries its own addresses, so no peer is needed.
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/settings.h"
#include "src/instruments/doctor/support.h"
#include "transports/verbs/address_handles.h"

namespace shmemctl::doctor {

namespace {

// If the kernel has to resolve the hardware address, an attempt takes up to 3 s.
constexpr std::chrono::seconds handle_deadline{40};

std::vector<verbs::PortAddress> addresses_in_use(const CheckContext& context) {
  std::vector<verbs::PortAddress> addresses;
  for (const RdmaPort& at : fabric_rdma_ports(context))
    for (const int index : gid_indices_in_use(at, context.environment))
      addresses.push_back({at.nic->name, at.port->number, index,
                           at.port->link_layer.value == LinkLayer::infiniband});
  return addresses;
}

/// The child's output, in the format that judge_address_handles() describes.
std::string trial_text(const std::string& library,
                       const std::vector<verbs::PortAddress>& addresses) {
  const verbs::AddressOutcomes result = verbs::try_address_handles(library, addresses);
  if (!result.unusable.empty())
    return "none\t" + printable(result.unusable, 300) + "\n";
  std::string text;
  for (const verbs::AddressOutcome& each : result.outcomes) {
    const std::string place =
        fmt::format("{}:{}\t{}", each.address.device, each.address.port, each.address.gid_index);
    if (!each.untried.empty())
      text += "untried\t" + place + "\t" + printable(each.untried, 300) + "\n";
    else if (each.error_number == 0)
      text += "ok\t" + place + "\t" + each.text + "\n";
    else
      text += fmt::format("bad\t{}\t{}\t{}\n", place, each.text, each.error_number);
  }
  return text;
}

/// @param address "10.0.0.1", "LID 7"
std::string fix_for(int error_number, const std::string& port, const std::string& address) {
  const std::string device = port.substr(0, port.find(':'));
  if (starts_with(address, "LID "))
    return "ibstat " + device + "  # the port must be active, with a LID of the subnet manager";
  const std::string show = "ip -brief address | grep -F '" + address + "'";
  switch (error_number) {
  case EHOSTUNREACH:
  case ENETUNREACH:
  case ETIMEDOUT:
  case EDESTADDRREQ:
    return "ip route get " + address + "; " + show +
           "  # the address must be on an interface that is up";
  case ENOMEM:
  case EAGAIN:
    return "cat /sys/fs/cgroup/rdma.max /sys/fs/cgroup/rdma.current  # raise the limit of " +
           device;
  case EPERM:
  case EACCES:
    return "docker run --device=/dev/infiniband --cap-add=IPC_LOCK";
  default:
    // The driver looks for the interface of a GID in its own network namespace.
    return show + "  # without a line, its interface is in another network namespace: docker run "
                  "--network=host, hostNetwork: true, or choose another GID by "
                  "NVSHMEM_IB_GID_INDEX and NCCL_IB_GID_INDEX";
  }
}

} // namespace

CheckResult judge_address_handles(const std::string& answer) {
  struct OfPort {
    std::vector<std::string> good, bad;
  };
  std::map<std::string, OfPort> ports;
  std::vector<std::string> good, bad, untried;
  std::string fix;
  for (const std::string& line : split(answer, '\n')) {
    const std::vector<std::string> parts = split(line, '\t');
    if (parts.size() > 1 && parts[0] == "none")
      return skipped("libibverbs cannot be used: see libibverbs", parts[1]);
    if (parts.size() < 4)
      continue;
    const std::string place = parts[1] + " GID " + parts[2];
    if (parts[0] == "ok") {
      good.push_back(place + " (" + parts[3] + ")");
      ports[parts[1]].good.push_back(parts[3]);
    } else if (parts[0] == "untried") {
      untried.push_back(place + ": " + parts[3]);
    } else if (parts.size() > 4) {
      const auto number = static_cast<int>(parse_integer(parts[4]).value_or(0));
      bad.push_back(place + " (" + parts[3] + "): " + std::strerror(number));
      ports[parts[1]].bad.push_back(parts[3]);
      if (fix.empty())
        fix = fix_for(number, parts[1], parts[3]);
    }
  }
  const std::string evidence = "ibv_create_ah: " + std::to_string(good.size()) + " made" +
                               (bad.empty() ? "" : ", refused for " + name_list(bad)) +
                               (untried.empty() ? "" : "; not tried: " + name_list(untried));
  if (!bad.empty()) {
    std::vector<std::string> cut_off;
    for (const auto& port : ports)
      if (port.second.good.empty())
        cut_off.push_back(port.first);
    const std::string reason = "no address handle to " + name_list(bad);
    // A warning if another GID of the port works, because libraries may choose that one.
    return cut_off.empty()
               ? warned(reason + "; a library that chooses this GID cannot connect", evidence, fix)
               : failed("IBGDA, DEVX and UD queue pairs cannot connect: " + reason, evidence, fix);
  }
  if (good.empty())
    return skipped("no address could be tried", untried.empty() ? "" : evidence);
  return passed("the driver makes address handles to " + name_list(good), evidence);
}

CheckResult address_handles(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine: the system root is a copy");
  const std::vector<verbs::PortAddress> addresses = addresses_in_use(context);
  if (addresses.empty())
    return skipped("no active port of the compute fabric has an address: see rdma-port-state and "
                   "rdma-gid-table");
  const std::string library = Options(context.environment).text("VERBS_LIBRARY");
  const ChildOutput answer = call_in_child([&] { return trial_text(library, addresses); },
                                           "ibv_create_ah", handle_deadline);
  if (!answer.problem.empty())
    return failed(answer.problem, "ibv_create_ah in a child process",
                  "look at dmesg for messages of the NIC's driver");
  return judge_address_handles(answer.text);
}

} // namespace shmemctl::doctor
