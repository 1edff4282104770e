// RDMA devices of this machine and their ports, as libibverbs reports them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/sysroot.h"
#include "transports/verbs/functions.h"
#include "transports/verbs/gid.h"

namespace shmemctl::verbs {

struct Port {
  int number = 1;
  bool active = false;
  std::string state; ///< "ACTIVE", "DOWN", ...
  bool ethernet = true;
  bool grh_required = false;
  std::uint16_t lid = 0;
  int mtu_bytes = 0;                   ///< active MTU
  std::uint64_t max_message_bytes = 0; ///< largest message of one work request
  std::vector<GidEntry> gids;          ///< without empty entries
};

/// An open device. The object cannot be copied or moved, since others point to it.
class Device {
public:
  /// Custom function to open a device; returns nullptr and sets errno on failure.
  using Open = std::function<ibv_context*(ibv_device*)>;
  /// Throws Error (unavailable) if the device cannot be opened or queried.
  /// @param open if empty, ibv_open_device() is used
  Device(std::shared_ptr<const Functions> functions, ibv_device* device, const Open& open = {});
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() = default;

  const std::string& name() const { return name_; }
  const Functions& functions() const { return *functions_; }
  ibv_context* context() const { return context_.get(); }
  const ibv_device_attr& attributes() const { return attributes_; }
  int port_count() const { return attributes_.phys_port_cnt; }
  /// Queries the port's present state. Throws Error (unavailable).
  Port port(int number) const;
  /// Allocated by the first call; not thread safe. Throws Error (unavailable).
  ibv_pd* protection_domain();

private:
  std::vector<GidEntry> gids(int port) const;
  ibv_port_attr port_attributes(int number) const;

  std::shared_ptr<const Functions> functions_;
  std::string name_;
  Context context_;
  ProtectionDomain protection_domain_;
  ibv_device_attr attributes_{};
};

/// Whether the device is known to place the WRITEs of a QP in posting order. True for Soft-RoCE,
/// which executes requests one by one. False for HCAs: adaptive routing and out-of-order placement
/// are settings of their firmware and of the fabric, which libibverbs does not report.
bool keeps_write_order(const ibv_device_attr& attributes);

/// The state as the kernel's file `state` of the port names it: "ACTIVE".
const char* port_state_text(ibv_port_state state);

/// A device that cannot be used.
struct LeftOut {
  std::string device; ///< "" if the list of devices is the problem
  std::string reason; ///< one clause
  std::string fix;    ///< "" if there is no fix
};

struct Survey {
  std::vector<std::unique_ptr<Device>> devices; ///< open devices that support RC QPs, by name
  std::vector<LeftOut> left_out;
  std::vector<std::string> unseen; ///< devices that the kernel lists, if libibverbs lists none
  /// Why there is no device; "" if there is one.
  std::string reason() const;
};

/// Opens all devices. Devices that cannot be used are in left_out, with the reason.
Survey survey(const std::shared_ptr<const Functions>& functions,
              const Sysroot& sysroot = Sysroot());

} // namespace shmemctl::verbs
