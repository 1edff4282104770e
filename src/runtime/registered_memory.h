// Host memory outside of the symmetric heap that every PE of the job registers, and the descriptors
// of all PEs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/runtime/buffers.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// Zeroed, page-aligned memory of this PE, registered with Runtime::buffers(). It is unregistered
/// only by free(), which is collective, and not by the destructor: after an Error the other PEs do
/// not take part, and the runtime ends all registrations itself. The memory then stays allocated
/// until the process ends, because other PEs may still use it.
class RegisteredMemory {
public:
  /// Collective: registers `size_bytes`, rounded up to whole pages, and exchanges the descriptors.
  /// If a PE cannot register its memory, throws Error (unavailable), which names that PE, on all
  /// PEs.
  RegisteredMemory(Runtime& runtime, std::size_t size_bytes);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  std::byte* get() const { return memory_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// The descriptor of that PE's memory, for Buffers::put() and get().
  const BufferDescriptor& of(int pe) const { return descriptors_.at(static_cast<std::size_t>(pe)); }
  /// Collective: waits until no PE uses this PE's memory, then unregisters and unmaps it. Throws
  /// Error (deadline), naming the PE that still uses it.
  void free();

private:
  void map_and_register();
  void release();

  Runtime& runtime_;
  std::size_t size_bytes_;
  std::byte* memory_ = nullptr;
  BufferHandle handle_;
  std::vector<BufferDescriptor> descriptors_; ///< by PE
};

/// Why this PE cannot use registered buffers of `pe` (they share no memory); "" if it can.
std::string no_buffers_reason(Runtime& runtime, int pe);

} // namespace shmemctl
