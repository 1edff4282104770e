// Host memory outside of the symmetric heap that every PE of the job registers, and the descriptors
// of all of them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/runtime/buffers.h"
#include "src/runtime/runtime.h"

namespace shmemctl {

/// Zeroed, page-aligned memory of this PE, registered with Runtime::buffers(). Unregistered by
/// free(), which is collective, and by no destructor: after an Error the others do not take part,
/// and the runtime ends all registrations itself; the memory then stays until the process ends,
/// because other PEs may still use it.
class RegisteredMemory {
public:
  /// Collective: registers `size_bytes`, rounded up to whole pages, and passes the descriptors on.
  /// Throws Error (unavailable) on all PEs if one cannot register its memory; it names that PE.
  RegisteredMemory(Runtime& runtime, std::size_t size_bytes);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  std::byte* get() const { return memory_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// What Buffers::put() and get() take to reach that PE's memory.
  const BufferDescriptor& of(int pe) const { return descriptors_.at(static_cast<std::size_t>(pe)); }
  /// Collective: waits until no PE uses this PE's memory, and gives it back. Throws Error
  /// (deadline), naming the PE that still uses it.
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

/// Why a PE cannot use registered buffers of the other one: they share no memory; "" if it can.
std::string no_buffers_reason(Runtime& runtime, int pe);

} // namespace shmemctl
