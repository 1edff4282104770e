#include "transports/verbs/async_events.h"

#include <fcntl.h>
#include <poll.h>

#include "src/base/log.h"

namespace shmemctl::verbs {

namespace {

std::string times(int count) {
  return count == 1 ? "once" : std::to_string(count) + " times";
}

/// The meaning of a QP's asynchronous error, as the InfiniBand Architecture Specification defines
/// it.
const char* queue_pair_trouble(ibv_event_type type) {
  if (type == IBV_EVENT_QP_ACCESS_ERR)
    return "a peer used an address or key that it does not have here";
  return type == IBV_EVENT_QP_REQ_ERR ? "a peer's request is malformed" : "a queue pair has failed";
}

} // namespace

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
  // The descriptor is non-blocking: the call fails when no event is left.
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
    // The event is also sent for ports that were up already.
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
  case IBV_EVENT_CQ_ERR:
    set_flags_once(IBV_EVENT_CQ_ERR, "a completion queue of " + device + " has overrun");
    break;
  case IBV_EVENT_QP_FATAL:
  case IBV_EVENT_QP_REQ_ERR:
  case IBV_EVENT_QP_ACCESS_ERR:
    // A completion with an error, here or at the peer, tells which transfer failed.
    set_flags_once(event.event_type,
                   device + " reports that " + queue_pair_trouble(event.event_type));
    break;
  case IBV_EVENT_GID_CHANGE:
  case IBV_EVENT_LID_CHANGE:
    ++moved_[event.element.port_num];
    // Not a warning: an interface that comes up gets its addresses one by one.
    log(LogLevel::info, "ibrc",
        "the addresses of port " + std::to_string(event.element.port_num) + " of " + device +
            " have changed");
    break;
  default:
    break;
  }
}

void AsyncEvents::set_flags_once(ibv_event_type type, const std::string& text) {
  if (reported_.insert(type).second)
    log(LogLevel::warning, "ibrc", text);
}

std::string AsyncEvents::history(int port) const {
  const std::lock_guard lock(mutex_);
  if (fatal_)
    return "the device reports a fatal error";
  std::string text;
  if (const auto found = went_down_.find(port); found != went_down_.end()) {
    const auto up = is_up_.find(port);
    text = "the port went down " + times(found->second) +
           (up != is_up_.end() && up->second ? " and is up again" : "");
  }
  if (const auto found = moved_.find(port); found != moved_.end())
    text += (text.empty() ? "the port's addresses changed " : ", its addresses changed ") +
            times(found->second);
  return text;
}

} // namespace shmemctl::verbs
