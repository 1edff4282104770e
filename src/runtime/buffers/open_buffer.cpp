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

namespace {
constexpr std::size_t most_bounce_bytes = std::size_t{1} << 20;
}

OpenBuffer::OpenBuffer(int my_pe, const RegisteredBuffer& mine,
                       std::shared_ptr<const Control> control, const Opener& opener)
    : owner_pe_(my_pe), handle_(mine.handle), opener_(opener), control_(std::move(control)),
      pages_(reinterpret_cast<std::byte*>(mine.extent.pages.begin)),
      page_gap_bytes_(mine.extent.page_gap_bytes()), address_(mine.extent.address),
      size_bytes_(mine.extent.size_bytes), writable_(mine.writable),
      on_gpu_(mine.gpu != nullptr), path_{BufferWay::zero_copy, "it is this PE's own memory"} {}

OpenBuffer::OpenBuffer(std::shared_ptr<OwnerLink> owner, const BufferHandle& handle,
                       const Opener& opener)
    : owner_pe_(owner->owner_pe()), handle_(handle), opener_(opener), owner_(std::move(owner)),
      control_(owner_, &owner_->control()) {
  const Reply reply = owner_->open(handle);
  address_ = reply.answer.address;
  size_bytes_ = reply.answer.size_bytes;
  writable_ = reply.answer.writable;
  on_gpu_ = reply.answer.memory != BufferMemory::host;
  choose_way(reply);
}

void OpenBuffer::choose_way(const Reply& reply) {
  const std::string unmapped = on_gpu_ ? why_gpu_not_mapped(reply) : why_not_mapped(reply);
  if (unmapped.empty()) {
    path_ = {BufferWay::zero_copy, "mapped here: " + reply.answer.reason};
    return;
  }
  const std::string unattached = why_not_attached();
  if (unattached.empty()) {
    path_ = {BufferWay::attach, "not mapped here: " + unmapped};
    return;
  }
  owner_->require_stage();
  path_ = {BufferWay::staged, "not mapped here: " + unmapped + "; no attach: " + unattached};
}

std::string OpenBuffer::why_not_mapped(const Reply& reply) {
  if (!opener_.allowed.zero_copy)
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

std::string OpenBuffer::why_gpu_not_mapped(const Reply& reply) {
  const Answer& answer = reply.answer;
  if (!opener_.allowed.zero_copy)
    return "mapping is switched off";
  if (answer.memory == BufferMemory::gpu_unshared)
    return answer.reason;
  if (!opener_.gpu)
    return "this PE has no GPU";
  if (answer.memory == BufferMemory::gpu_descriptors && answer.parts.empty())
    return answer.reason; // descriptors were lost on the way
  GpuImport import{owner_pe_, answer.memory, answer.device, answer.handle, {}};
  std::uint64_t room_bytes = 0;
  for (const FilePart& part : answer.parts) {
    import.pieces.push_back({reply.descriptors[part.file].get(), part.size_bytes});
    if (__builtin_add_overflow(room_bytes, part.size_bytes, &room_bytes))
      return "its allocations do not fit the address space";
  }
  if (answer.memory == BufferMemory::gpu_descriptors &&
      (answer.size_bytes > room_bytes || answer.page_gap_bytes > room_bytes - answer.size_bytes))
    return "its allocations do not hold all of it";
  try {
    entry_.emplace(opener_.book, owner_pe_, handle_);
    mapping_ = opener_.gpu->map(import);
  } catch (const Error& error) {
    entry_.reset();
    return error.message();
  }
  pages_ = mapping_->base();
  page_gap_bytes_ = answer.page_gap_bytes;
  return {};
}

/// Tries it with one byte.
std::string OpenBuffer::why_not_attached() const {
  if (on_gpu_)
    return "system calls do not reach memory of a GPU";
  if (!opener_.allowed.attach)
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
    return Error(ExitCode::unavailable, "buffer of PE " + std::to_string(owner_pe_),
                 put ? "put" : "get", why, fix);
  };
  // The number of a process that has ended may be another one's.
  if (!owner_->alive())
    throw fail("that PE has closed the connection", "check its output");
  auto* bytes = static_cast<std::byte*>(local);
  for (std::size_t done = 0; done < size_bytes;) {
    const iovec here{bytes + done, size_bytes - done};
    const iovec there{reinterpret_cast<void*>(address_ + offset_bytes + done), size_bytes - done};
    const ssize_t step = put ? ::process_vm_writev(owner_->process(), &here, 1, &there, 1, 0)
                             : ::process_vm_readv(owner_->process(), &here, 1, &there, 1, 0);
    if (step > 0)
      done += static_cast<std::size_t>(step);
    else if (errno == EFAULT)
      throw fail("memory on one side was freed", "unregister a buffer before freeing its memory");
    else if (errno != EINTR)
      throw fail(std::strerror(errno), "run again; if it persists, report it as a bug in shmemctl");
  }
}

/// In pieces, through memory of the host: system calls do not reach a GPU's.
void OpenBuffer::attach_gpu(bool put, std::uint64_t offset_bytes, void* local,
                            std::size_t size_bytes) const {
  auto* const bytes = static_cast<std::byte*>(local);
  std::vector<std::byte> piece(std::min(size_bytes, most_bounce_bytes));
  for (std::size_t done = 0; done < size_bytes;) {
    const std::size_t step = std::min(size_bytes - done, piece.size());
    if (put)
      opener_.gpu->copy(piece.data(), bytes + done, step);
    attach(put, offset_bytes + done, piece.data(), step);
    if (!put)
      opener_.gpu->copy(bytes + done, piece.data(), step);
    done += step;
  }
}

LocalCopy OpenBuffer::copy_of(const void* local) const {
  if (is_gpu_local(local))
    return [gpu = opener_.gpu](void* to, const void* from, std::size_t size_bytes) {
      gpu->copy(to, from, size_bytes);
    };
  return
      [](void* to, const void* from, std::size_t size_bytes) { std::memcpy(to, from, size_bytes); };
}

void OpenBuffer::require_writable() const {
  if (!writable_)
    throw Error(ExitCode::usage, "buffer of PE " + std::to_string(owner_pe_), "put",
                "its memory is read-only", "use get only, or register writable memory");
}

void OpenBuffer::put(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes) const {
  require_writable();
  const bool by_gpu = on_gpu_ || is_gpu_local(source);
  if (path_.way == BufferWay::staged)
    owner_->staged_put(handle_, offset_bytes, source, size_bytes, opener_.user, copy_of(source));
  else if (path_.way == BufferWay::attach)
    (this->*(by_gpu ? &OpenBuffer::attach_gpu : &OpenBuffer::attach))(
        true, offset_bytes, const_cast<void*>(source), size_bytes);
  else if (by_gpu)
    opener_.gpu->copy(at(offset_bytes), source, size_bytes);
  else
    copy_to_shared(at(offset_bytes), source, size_bytes);
}

void OpenBuffer::get(void* target, std::uint64_t offset_bytes, std::size_t size_bytes) const {
  const bool by_gpu = on_gpu_ || is_gpu_local(target);
  if (path_.way == BufferWay::staged)
    owner_->staged_get(target, handle_, offset_bytes, size_bytes, opener_.user, copy_of(target));
  else if (path_.way == BufferWay::attach)
    (this->*(by_gpu ? &OpenBuffer::attach_gpu : &OpenBuffer::attach))(false, offset_bytes, target,
                                                                      size_bytes);
  else if (by_gpu)
    opener_.gpu->copy(target, at(offset_bytes), size_bytes);
  else
    std::memmove(target, at(offset_bytes), size_bytes);
}

} // namespace buffers

} // namespace shmemctl
