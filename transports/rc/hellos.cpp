#include "transports/rc/hellos.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace shmemctl::rc {

void accept_hello(Job& job, int pe, const std::string& host, int qp_sets, const QpSetCount& local) {
  job.peer_hosts[static_cast<std::size_t>(pe)] = printable(host, max_text_bytes);
  if (qp_sets != local.here)
    throw Error(ExitCode::usage, job.name_of(pe), "connect",
                fmt::format("it creates {} QPs per peer, this PE {}", qp_sets, local.here),
                fmt::format("set {} on all PEs", local.options), job.where());
}

} // namespace shmemctl::rc
