#include "transports/verbs/shared_receives.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

#include "transports/verbs/registration.h"

namespace shmemctl::verbs {

std::uint32_t max_shared_receives(const Device& device) {
  const ibv_device_attr& attributes = device.attributes();
  if (attributes.max_srq <= 0)
    return 0;
  // The CQ must hold a completion for every receive at the same time.
  return static_cast<std::uint32_t>(
      std::max(0, std::min(attributes.max_srq_wr, attributes.max_cqe)));
}

Error SharedReceives::failure(const char* what, const char* action, int error_number) const {
  Where where;
  where.device = device_.name();
  return {
      ExitCode::unavailable,
      what,
      action,
      std::strerror(error_number),
      error_number == ENOMEM
          ? "raise the limit of locked memory (ulimit -l unlimited), or lower SHMEMCTL_SRQ_DEPTH"
          : "check the kernel log: dmesg",
      where};
}

SharedReceives::SharedReceives(Device& device, std::uint32_t depth, std::size_t message_bytes)
    : device_(device), message_bytes_(message_bytes),
      memory_(depth * message_bytes, "memory for messages") {
  const Functions& functions = device.functions();
  registered_ = register_memory(device, memory_.data(), memory_.size_bytes(), MemoryKind::host, {},
                                "memory for messages");
  channel_ = own(functions.create_comp_channel(device.context()), functions.destroy_comp_channel);
  if (!channel_)
    throw failure("completion channel", "create", errno);
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  completions_ = own(
      functions.create_cq(device.context(), static_cast<int>(depth), nullptr, channel_.get(), 0),
      functions.destroy_cq);
  if (!completions_)
    throw failure("CQ", "create", errno);
  ibv_srq_init_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.attr.max_wr = depth;
  attributes.attr.max_sge = 1;
  queue_ =
      own(functions.create_srq(device.protection_domain(), &attributes), functions.destroy_srq);
  if (!queue_)
    throw failure("SRQ", "create", errno);
  for (std::uint64_t index = 0; index < depth; ++index)
    if (const int error_number = post(&index, 1); error_number != 0)
      throw failure("SRQ", "post receives", error_number);
}

SharedReceives::~SharedReceives() {
  // A CQ cannot be destroyed until its events are acknowledged.
  if (completions_ && unacknowledged_ > 0)
    device_.functions().ack_cq_events(completions_.get(), unacknowledged_);
}

int SharedReceives::post(const std::uint64_t* indices, int count) {
  std::array<ibv_sge, batch> elements;
  std::array<ibv_recv_wr, batch> receives;
  for (int i = 0; i < count; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    elements[slot] = {reinterpret_cast<std::uintptr_t>(at(indices[i])),
                      static_cast<std::uint32_t>(message_bytes_), registered_->lkey};
    receives[slot] = {indices[i], i + 1 < count ? &receives[slot + 1] : nullptr, &elements[slot],
                      1};
  }
  ibv_recv_wr* refused = nullptr;
  return ::ibv_post_srq_recv(queue_.get(), receives.data(), &refused);
}

void SharedReceives::post_again(const ibv_wc* arrived, int count) {
  std::array<std::uint64_t, batch> indices;
  for (int i = 0; i < count; ++i)
    indices[static_cast<std::size_t>(i)] = arrived[i].wr_id;
  if (const int error_number = post(indices.data(), count); error_number != 0)
    throw failure("SRQ", "post receives", error_number);
}

void SharedReceives::arm() {
  ::ibv_req_notify_cq(completions_.get(), 0);
}

void SharedReceives::clear_events() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (device_.functions().get_cq_event(channel_.get(), &queue, &context) == 0)
    ++unacknowledged_;
}

} // namespace shmemctl::verbs
