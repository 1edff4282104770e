#include "transports/verbs/device.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "transports/verbs/device_share.h"

namespace shmemctl::verbs {

namespace {

constexpr std::size_t max_gids = 4096;

Error device_error(const std::string& device, const std::string& attempted, int error_number,
                   const std::string& fix) {
  Where where;
  where.device = device;
  return {ExitCode::unavailable, "RDMA device", attempted, std::strerror(error_number), fix, where};
}

/// The errno value of a failed call: some functions of the library return it, some return -1 and
/// set errno.
int error_of(int result) {
  return result > 0 ? result : errno;
}

/// Uses the extended call if the device has it, since only the extended call reports the port's
/// flags.
int query_port(const Functions& functions, ibv_context* context, int number, ibv_port_attr& port) {
  std::memset(&port, 0, sizeof port);
  const auto slot = static_cast<std::uint8_t>(number);
  // The test of verbs_get_ctx_op(), a macro that is not standard C++. Newer versions of
  // verbs_context add their members at its beginning.
  const verbs_context* extended = verbs_get_ctx(context);
  if (extended && extended->sz >= sizeof *extended - offsetof(verbs_context, query_port) &&
      extended->query_port)
    return extended->query_port(context, slot, &port, sizeof port);
  return functions.query_port(context, slot, reinterpret_cast<_compat_ibv_port_attr*>(&port));
}

GidType gid_type(std::uint32_t type) {
  if (type == IBV_GID_TYPE_ROCE_V2)
    return GidType::roce_v2;
  return type == IBV_GID_TYPE_ROCE_V1 ? GidType::roce_v1 : GidType::infiniband;
}

/// Why RC queue pairs of the device cannot be connected by exchanging their numbers; "" if they
/// can.
std::string no_rc_reason(const ibv_device& device) {
  switch (device.transport_type) {
  case IBV_TRANSPORT_IB:
    return {};
  case IBV_TRANSPORT_IWARP:
    return "iWARP connects by the RDMA connection manager only";
  default:
    return "it has no RC queue pairs";
  }
}

Refusal why_not_open(const ibv_device& device, int error_number) {
  const std::string node = std::string("/dev/infiniband/") + device.dev_name;
  const char* fix = "give the job /dev/infiniband, as --device=/dev/infiniband does for a "
                    "container, and load ib_uverbs";
  if (error_number == ENOENT || error_number == ENODEV || ::access(node.c_str(), F_OK) != 0)
    return {node + " is missing", fix};
  Refusal refused = refusal(device.name, error_number, fix);
  refused.message += " (" + node + ")";
  return refused;
}

} // namespace

bool keeps_write_order(const ibv_device_attr& attributes) {
  constexpr std::uint32_t soft_roce = 0xffffff; // RXE_VENDOR_ID of the kernel's driver
  return attributes.vendor_id == soft_roce;
}

const char* port_state_text(ibv_port_state state) {
  switch (state) {
  case IBV_PORT_DOWN:
    return "DOWN";
  case IBV_PORT_INIT:
    return "INIT";
  case IBV_PORT_ARMED:
    return "ARMED";
  case IBV_PORT_ACTIVE:
    return "ACTIVE";
  case IBV_PORT_ACTIVE_DEFER:
    return "ACTIVE_DEFER";
  default:
    return "NOP";
  }
}

Device::Device(std::shared_ptr<const Functions> functions, ibv_device* device, const Open& open)
    : functions_(std::move(functions)), name_(device->name) {
  errno = 0;
  context_ = own(open ? open(device) : functions_->open_device(device), functions_->close_device);
  if (!context_) {
    const int error_number = errno != 0 ? errno : ENOENT;
    Where where;
    where.device = name_;
    const Refusal refused = why_not_open(*device, error_number);
    throw Error(ExitCode::unavailable, "RDMA device", "open", refused.message, refused.fix, where);
  }
  if (const int result = functions_->query_device(context_.get(), &attributes_); result != 0)
    throw device_error(name_, "query", error_of(result), "check the kernel log: dmesg");
}

ibv_port_attr Device::port_attributes(int number) const {
  ibv_port_attr attributes;
  if (const int result = query_port(*functions_, context_.get(), number, attributes); result != 0)
    throw device_error(name_, "query port " + std::to_string(number), error_of(result),
                       "check the kernel log: dmesg");
  return attributes;
}

Port Device::port(int number) const {
  const ibv_port_attr attributes = port_attributes(number);
  Port port;
  port.number = number;
  port.active = attributes.state == IBV_PORT_ACTIVE;
  port.state = port_state_text(attributes.state);
  port.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.grh_required = (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  port.lid = attributes.lid;
  port.mtu_bytes = 128 << static_cast<int>(attributes.active_mtu);
  port.max_message_bytes = attributes.max_msg_sz;
  port.gids = gids(number);
  return port;
}

std::vector<GidEntry> Device::gids(int port) const {
  // The call returns the entries of all ports, and fails if the array is too small for them.
  std::size_t most = 1;
  for (int number = 1; number <= port_count(); ++number)
    most += static_cast<std::size_t>(std::max(port_attributes(number).gid_tbl_len, 0));
  std::vector<ibv_gid_entry> entries(std::min(most, max_gids));
  const ssize_t count = functions_->query_gid_table(context_.get(), entries.data(), entries.size(),
                                                    0, sizeof(ibv_gid_entry));
  if (count < 0)
    throw device_error(name_, "read its GID table", static_cast<int>(-count),
                       "check /sys/class/infiniband/" + name_ + "/ports/*/gids");
  std::vector<GidEntry> table;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.port_num != static_cast<std::uint32_t>(port))
      continue;
    GidEntry copy;
    copy.index = static_cast<int>(entry.gid_index);
    copy.type = gid_type(entry.gid_type);
    std::copy(std::begin(entry.gid.raw), std::end(entry.gid.raw), copy.raw.begin());
    table.push_back(copy);
  }
  return table;
}

ibv_pd* Device::protection_domain() {
  if (!protection_domain_)
    protection_domain_ = own(functions_->alloc_pd(context_.get()), functions_->dealloc_pd);
  if (!protection_domain_) {
    const Refusal refused =
        refusal(name_, errno, "raise the limit of locked memory: ulimit -l unlimited");
    Where where;
    where.device = name_;
    throw Error(ExitCode::unavailable, "protection domain", "allocate", refused.message,
                refused.fix, where);
  }
  return protection_domain_.get();
}

std::string Survey::reason() const {
  if (!devices.empty())
    return {};
  if (!left_out.empty()) {
    std::vector<std::string> reasons;
    for (const LeftOut& each : left_out)
      reasons.push_back((each.device.empty() ? "" : each.device + ": ") + each.reason);
    return join(reasons, ", ");
  }
  return unseen.empty()
             ? "there is no RDMA device"
             : "the kernel has " + join(unseen, ", ") +
                   ", but /dev/infiniband/uverbs* is missing (a container needs "
                   "--device=/dev/infiniband), or libibverbs has no provider for a device";
}

Survey survey(const std::shared_ptr<const Functions>& functions, const Sysroot& sysroot) {
  Survey found;
  int count = 0;
  errno = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(
      functions->get_device_list(&count), functions->free_device_list);
  // The library omits devices that it cannot open, without an error.
  if (count == 0)
    found.unseen = sysroot.list("/sys/class/infiniband");
  if (!list && errno != 0 && errno != ENOSYS)
    found.left_out.push_back(
        {"", std::string("RDMA devices cannot be listed: ") + std::strerror(errno), ""});
  for (int i = 0; list && i < count; ++i) {
    ibv_device* device = list.get()[i];
    try {
      if (const std::string reason = no_rc_reason(*device); !reason.empty())
        found.left_out.push_back({device->name, reason, ""});
      else
        found.devices.push_back(std::make_unique<Device>(functions, device));
    } catch (const Error& error) {
      found.left_out.push_back({device->name, error.system_message(), error.fix()});
    }
  }
  std::sort(found.devices.begin(), found.devices.end(), [](const auto& left, const auto& right) {
    return natural_less(left->name(), right->name());
  });
  return found;
}

} // namespace shmemctl::verbs
