#include "transports/ibrc/settings.h"

#include "transports/registry.h"

namespace shmemctl::ibrc {

Settings read_settings(const Options& options) {
  options.require_valid(find_transport("ibrc")->options);
  Settings settings;
  settings.path = rc::read_path_options(options);
  settings.gid = verbs::read_gid_request(options);
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
