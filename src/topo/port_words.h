// A port's state and link layer in the kernel's words.
#pragma once

#include "src/topo/node.h"

namespace shmemctl {

/// "DOWN", "INIT", "ARMED", "ACTIVE": as /sys/class/infiniband/*/ports/*/state has it.
const char* to_string(PortState state);
/// "InfiniBand", "Ethernet", as .../link_layer has it, or "other".
const char* to_string(LinkLayer layer);

} // namespace shmemctl
