// The transport shm: loads and stores into memory that another process of this node shares.
#pragma once

#include <memory>

#include "transports/shm/atomics.h"
#include "transports/transport.h"

namespace shmemctl {

std::unique_ptr<Transport> make_shm_transport();

} // namespace shmemctl
