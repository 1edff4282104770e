// The transport p2p: host-initiated operations on GPU memory that is mapped in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/p2p/copy_engine.h"
#include "transports/transport.h"

namespace shmemctl {

/// Puts and gets are copies by the GPU's copy engine; an atomic is a kernel of one thread. The
/// operations of one context are executed in call order. Local memory may be host memory or memory
/// of this GPU.
/// @param copies  must outlive the transport
/// @param why_not by PE: why its memory is not mapped here; "" if it is mapped
std::unique_ptr<Transport> make_p2p_transport(CopyEngine& copies, std::vector<std::string> why_not);

} // namespace shmemctl
