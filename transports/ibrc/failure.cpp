#include "transports/ibrc/failure.h"

#include <cstring>
#include <fmt/format.h>

#include "transports/verbs/status.h"

namespace shmemctl::ibrc {

namespace {

std::string attempt_of(const Work& work) {
  switch (work.kind) {
  case WorkKind::put:
    return fmt::format("put {} bytes", work.size_bytes);
  case WorkKind::get:
    return fmt::format("get {} bytes", work.size_bytes);
  case WorkKind::atomic:
    return "perform an atomic";
  case WorkKind::signal:
    return "send a signal";
  case WorkKind::flush:
    return "complete transfers";
  }
  return "transfer data";
}

/// The port's present state; "gone" if the device does not respond.
std::string port_state(const JobView& job, const Nic& nic) {
  try {
    return job.device_of(nic).port(nic.port.number).state;
  } catch (const Error&) {
    return "gone";
  }
}

} // namespace

Error completion_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                         const ibv_wc& completion) {
  const Nic& nic = *job.nics[endpoint.port];
  const verbs::FailureScene scene{job.name_of(endpoint.pe), port_state(job, nic),
                                  endpoint.retry_seconds, endpoint.mtu_bytes};
  std::string message = job.device_of(nic).functions().wc_status_str(completion.status);
  message += ": " + verbs::status_meaning(completion.status, scene);
  if (completion.vendor_err != 0)
    message += fmt::format(", vendor error {:#x}", completion.vendor_err);
  if (const std::string history = job.devices[nic.device_index].events->history(nic.port.number);
      !history.empty())
    message += "; " + history;
  return {ExitCode::unavailable,
          job.name_of(endpoint.pe),
          attempt_of(work),
          message,
          verbs::status_fix(completion.status, scene),
          job.where(nic)};
}

Error post_failure(const JobView& job, const Endpoint& endpoint, const Work& work,
                   int error_number) {
  const Nic& nic = *job.nics[endpoint.port];
  return {ExitCode::unavailable,
          job.name_of(endpoint.pe),
          attempt_of(work),
          std::string("the device rejected the request: ") + std::strerror(error_number),
          error_number == EINVAL ? "use addresses aligned to the size of the variable if this is "
                                   "an atomic or a signal; otherwise check the kernel log: dmesg"
                                 : "check the kernel log: dmesg",
          job.where(nic)};
}

Error message_refused(const JobView& job, const Endpoint& endpoint, int region,
                      std::uint64_t offset_bytes, const std::string& why) {
  return {
      ExitCode::unavailable,
      fmt::format("offset {} of region {} of {}", offset_bytes, region, job.name_of(endpoint.pe)),
      "perform an atomic",
      "that PE refused: " + why,
      "use symmetric memory of that PE, at addresses that are multiples of the word's size; if "
      "they are, report this as a bug in shmemctl, with the command line",
      job.where(*job.nics[endpoint.port])};
}

} // namespace shmemctl::ibrc
