// Host-initiated operations on GPU memory that is mapped here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/p2p/copy_engine.h"
#include "transports/transport.h"

namespace shmemctl {

/// Puts and gets are copies by the GPU's copy engine, atomics a kernel of one thread, all of one
/// context in the order of their calls. Local memory may be the host's or this GPU's.
/// @param copies  must outlive the transport
/// @param why_not by PE: why its memory is not mapped here; "" where it is
std::unique_ptr<Transport> make_p2p_transport(CopyEngine& copies, std::vector<std::string> why_not);

} // namespace shmemctl
