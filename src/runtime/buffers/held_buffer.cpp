#include "src/runtime/buffers/held_buffer.h"

#include "src/base/error.h"

namespace shmemctl {

HeldBuffer::HeldBuffer(std::shared_ptr<const buffers::OpenBuffer> opened, std::uint32_t user)
    : opened_(std::move(opened)),
      lease_(std::make_unique<buffers::Lease>(opened_->control(), opened_->handle(), user)) {
  const std::string subject = "a buffer of PE " + std::to_string(opened_->owner_pe());
  if (!lease_->valid())
    throw Error(ExitCode::usage, subject, "hold", "it is no longer registered",
                "use a descriptor only while its buffer is registered");
  if (!opened_->address())
    throw Error(ExitCode::unavailable, subject, "hold", opened_->path().reason,
                "use Buffers::put() and get(), which also support other paths");
}

buffers::GpuSide& HeldBuffer::engine() const {
  if (!opened_->gpu())
    throw Error(ExitCode::usage, "buffer of PE " + std::to_string(opened_->owner_pe()),
                "copy on a stream", "this PE has no GPU", "use Buffers::put() and get()");
  return *opened_->gpu();
}

void HeldBuffer::put_on_stream(std::uint64_t offset_bytes, const void* source,
                               std::size_t size_bytes, void* stream) const {
  opened_->require_writable();
  require_inside(offset_bytes, size_bytes, this->size_bytes());
  if (size_bytes > 0)
    engine().start_copy(stream, address() + offset_bytes, source, size_bytes);
}

void HeldBuffer::get_on_stream(void* target, std::uint64_t offset_bytes, std::size_t size_bytes,
                               void* stream) const {
  require_inside(offset_bytes, size_bytes, this->size_bytes());
  if (size_bytes > 0)
    engine().start_copy(stream, target, address() + offset_bytes, size_bytes);
}

} // namespace shmemctl
