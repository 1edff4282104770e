#include "transports/verbs/async_events.h"

#include <fcntl.h>
#include <poll.h>

#include "src/base/log.h"

namespace shmemctl::verbs {

AsyncEvents::AsyncEvents(Device& device) : device_(device) {
  const int descriptor = device.context()->async_fd;
  if (descriptor >= 0)
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

void AsyncEvents::poll() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock())
    return;
  ibv_async_event event;
  // The descriptor does not block: the call fails when there is nothing left.
  while (device_.functions().get_async_event(device_.context(), &event) == 0) {
    note(event);
    device_.functions().ack_async_event(&event);
  }
}

void AsyncEvents::note(const ibv_async_event& event) {
  const std::string device = device_.name();
  switch (event.event_type) {
  case IBV_EVENT_PORT_ERR: {
    const int port = event.element.port_num;
    ++went_down_[port];
    is_up_[port] = false;
    log(LogLevel::warning, "ibrc", "port " + std::to_string(port) + " of " + device + " is down");
    break;
  }
  case IBV_EVENT_PORT_ACTIVE: {
    const int port = event.element.port_num;
    const auto before = is_up_.find(port);
    // It is also told of ports that were up already.
    if (before != is_up_.end() && !before->second)
      log(LogLevel::info, "ibrc",
          "port " + std::to_string(port) + " of " + device + " is up again");
    is_up_[port] = true;
    break;
  }
  case IBV_EVENT_DEVICE_FATAL:
    fatal_ = true;
    log(LogLevel::warning, "ibrc", device + " reports a fatal error");
    break;
  default:
    break;
  }
}

std::string AsyncEvents::history(int port) const {
  const std::lock_guard lock(mutex_);
  if (fatal_)
    return "the device reports a fatal error";
  const auto found = went_down_.find(port);
  if (found == went_down_.end())
    return {};
  const auto up = is_up_.find(port);
  return "the port went down " +
         (found->second == 1 ? std::string("once") : std::to_string(found->second) + " times") +
         (up != is_up_.end() && up->second ? " and is up again" : "");
}

} // namespace shmemctl::verbs
