#include "transports/ibrc/settings.h"

#include "transports/registry.h"

namespace shmemctl::ibrc {

Settings read_settings(const Options& options) {
  options.require_valid(find_transport("ibrc")->options);
  Settings settings;
  settings.path = rc::read_path_options(options);
  settings.gid.index = settings.path.gid_index;
  // The defaults of these options do not restrict the choice of GIDs; values that are set do.
  if (options.value("IB_ROCE_VERSION_NUM").set())
    settings.gid.roce_version = static_cast<int>(options.integer("IB_ROCE_VERSION_NUM"));
  if (options.value("IB_ADDR_FAMILY").set())
    settings.gid.ipv6 = options.text("IB_ADDR_FAMILY") == "AF_INET6";
  settings.gid.range = verbs::parse_address_range(options.text("IB_ADDR_RANGE"));
  if (const std::string mtu = options.text("IB_MTU"); !mtu.empty())
    settings.mtu_bytes = std::stoi(mtu);
  settings.qp_sets = 1 + static_cast<int>(options.integer("IB_NUM_RC_PER_DEVICE"));
  const std::string atomics = options.text("IB_ATOMICS");
  settings.atomics = atomics == "device"    ? AtomicsPreference::device
                     : atomics == "message" ? AtomicsPreference::message
                                            : AtomicsPreference::automatic;
  settings.write_order = read_write_order(options);
  settings.receives = static_cast<int>(options.integer("SRQ_DEPTH"));
  return settings;
}

} // namespace shmemctl::ibrc
