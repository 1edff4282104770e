#include "src/base/options.h"

#include <algorithm>

namespace shmemctl {

const std::vector<OptionSpec>& option_table() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> rows = {
        {"COLOR",
         OptionType::choice,
         "auto",
         "Colour on the terminal.",
         false,
         {"auto", "always", "never"}},
        {"TIMEOUT", OptionType::number, "60", "Deadline of every wait, in seconds.", false, {}, 0},
        {"LOG_LEVEL",
         OptionType::choice,
         "warning",
         "What is logged on stderr.",
         false,
         {"error", "warning", "info", "debug"}},
        {"LOG_SUBSYSTEMS", OptionType::text, "", "Comma list of subsystems to log; empty is all."},
        {"HCA_LIST", OptionType::text, "",
         "Comma list of name[:port] that may be used; a leading ^ excludes instead.", true},
        {"HCA_PE_MAPPING", OptionType::text, "",
         "Comma list of name:port:count; filters and replicates devices.", true},
        {"ENABLE_NIC_PE_MAPPING", OptionType::boolean, "0",
         "Give PE i the device i modulo the number of devices, instead of choosing by distance.",
         true},
        {"HCA_PREFIX", OptionType::text, "",
         "Devices that IBGDA and IBDEVX accept: a part of their name, after ^ a part they must not "
         "have.",
         true},
        {"DISABLE_DATA_DIRECT", OptionType::boolean, "0",
         "Use the HCA's own PCI path for distance, not that of its data-direct function.", true},
        {"NETDEVS_POLICY", OptionType::text, "AUTO",
         "Which entities share the NICs in NVSHMEM 3.7 and newer.", true},
        {"REMOTE_TRANSPORT",
         OptionType::choice,
         "ibrc",
         "The transport to other nodes.",
         true,
         {"none", "ibrc", "ucx", "ibdevx", "libfabric"}},
        {"IB_ENABLE_IBGDA", OptionType::boolean, "0", "Post work requests from the GPU.", true},
        {"IBGDA_ENABLE_MULTI_PORT", OptionType::boolean, "0",
         "Let IBGDA use every NIC of a PE, not only the first.", true},
    };
    std::sort(rows.begin(), rows.end(),
              [](const OptionSpec& a, const OptionSpec& b) { return a.name < b.name; });
    return rows;
  }();
  return table;
}

} // namespace shmemctl
