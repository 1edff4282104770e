#include "src/runtime/buffers/open_buffer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/uio.h>

#include "src/base/error.h"
#include "transports/shm/shm.h"

namespace shmemctl {

const char* to_string(BufferWay way) {
  switch (way) {
  case BufferWay::zero_copy:
    return "zero-copy";
  case BufferWay::attach:
    return "attach";
  case BufferWay::staged:
    return "staged";
  }
  return "";
}

namespace buffers {

OpenBuffer::OpenBuffer(int my_pe, const RegisteredBuffer& mine,
                       std::shared_ptr<const Control> control)
    : owner_pe_(my_pe), handle_(mine.handle), control_(std::move(control)),
      pages_(reinterpret_cast<std::byte*>(mine.extent.pages.begin)),
      page_gap_bytes_(mine.extent.page_gap_bytes()), address_(mine.extent.address),
      writable_(mine.writable), path_{BufferWay::zero_copy, "it is this PE's own memory"} {}

OpenBuffer::OpenBuffer(std::shared_ptr<OwnerLink> owner, const BufferHandle& handle,
                       std::uint32_t user, const WaysAllowed& allowed)
    : owner_pe_(owner->owner_pe()), handle_(handle), user_(user), owner_(std::move(owner)),
      control_(owner_, &owner_->control()) {
  const Reply reply = owner_->open(handle);
  address_ = reply.answer.address;
  writable_ = reply.answer.writable;
  choose_way(reply, allowed);
}

void OpenBuffer::choose_way(const Reply& reply, const WaysAllowed& allowed) {
  const std::string unmapped = why_not_mapped(reply, allowed);
  if (unmapped.empty()) {
    path_ = {BufferWay::zero_copy, "mapped here: " + reply.answer.reason};
    return;
  }
  const std::string unattached = why_not_attached(allowed);
  if (unattached.empty()) {
    path_ = {BufferWay::attach, "not mapped here: " + unmapped};
    return;
  }
  owner_->require_stage();
  path_ = {BufferWay::staged, "not mapped here: " + unmapped + "; no attach: " + unattached};
}

std::string OpenBuffer::why_not_mapped(const Reply& reply, const WaysAllowed& allowed) {
  if (!allowed.zero_copy)
    return "mapping is switched off";
  const Answer& answer = reply.answer;
  if (answer.parts.empty())
    return answer.reason;
  try {
    view_.emplace(answer.parts, reply.descriptors, writable_);
  } catch (const Error& error) {
    return error.message();
  }
  const std::size_t room_bytes = view_->size_bytes();
  if (answer.page_gap_bytes >= page_bytes() || answer.size_bytes > room_bytes ||
      answer.page_gap_bytes > room_bytes - answer.size_bytes) {
    view_.reset();
    return "its pages do not hold all of it";
  }
  pages_ = view_->base();
  page_gap_bytes_ = answer.page_gap_bytes;
  return {};
}

/// Tries it with one byte.
std::string OpenBuffer::why_not_attached(const WaysAllowed& allowed) const {
  if (!allowed.attach)
    return "it is switched off";
  if (owner_->process() <= 0)
    return "the owner is in another PID namespace";
  std::byte byte{};
  const iovec local{&byte, 1}, remote{reinterpret_cast<void*>(address_), 1};
  if (::process_vm_readv(owner_->process(), &local, 1, &remote, 1, 0) == 1)
    return {};
  return std::string("process_vm_readv: ") + std::strerror(errno);
}

void OpenBuffer::attach(bool put, std::uint64_t offset_bytes, void* local,
                        std::size_t size_bytes) const {
  const auto fail = [&](const std::string& why, const char* fix) {
    return Error(ExitCode::unavailable, "a buffer of PE " + std::to_string(owner_pe_),
                 put ? "put to" : "get from", why, fix);
  };
  // The number of a process that has ended may be another one's.
  if (!owner_->alive())
    throw fail("that PE has closed the connection", "look at its output");
  auto* bytes = static_cast<std::byte*>(local);
  for (std::size_t done = 0; done < size_bytes;) {
    const iovec here{bytes + done, size_bytes - done};
    const iovec there{reinterpret_cast<void*>(address_ + offset_bytes + done), size_bytes - done};
    const ssize_t step = put ? ::process_vm_writev(owner_->process(), &here, 1, &there, 1, 0)
                             : ::process_vm_readv(owner_->process(), &here, 1, &there, 1, 0);
    if (step > 0)
      done += static_cast<std::size_t>(step);
    else if (errno == EFAULT)
      throw fail("memory on one of the two sides was freed",
                 "unregister a buffer before its memory is freed");
    else if (errno != EINTR)
      throw fail(std::strerror(errno), "run again; if it stays, report it");
  }
}

void OpenBuffer::put(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes) const {
  if (!writable_)
    throw Error(ExitCode::usage, "a buffer of PE " + std::to_string(owner_pe_), "put to",
                "it is read-only memory", "only get from it, or register writable memory");
  if (path_.way == BufferWay::zero_copy)
    copy_to_shared(at(offset_bytes), source, size_bytes);
  else if (path_.way == BufferWay::attach)
    attach(true, offset_bytes, const_cast<void*>(source), size_bytes);
  else
    owner_->staged_put(handle_, offset_bytes, source, size_bytes, user_);
}

void OpenBuffer::get(void* target, std::uint64_t offset_bytes, std::size_t size_bytes) const {
  if (path_.way == BufferWay::zero_copy)
    std::memmove(target, at(offset_bytes), size_bytes);
  else if (path_.way == BufferWay::attach)
    attach(false, offset_bytes, target, size_bytes);
  else
    owner_->staged_get(target, handle_, offset_bytes, size_bytes, user_);
}

} // namespace buffers

} // namespace shmemctl
