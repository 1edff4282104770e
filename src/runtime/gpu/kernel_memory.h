// How the host allocates and maps memory that kernels use besides the heap. No CUDA header: tests
// implement it with plain memory, and their "kernels" are threads.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace shmemctl {

/// Thread safe. All functions but free() and unmap() throw Error (unavailable), with the device.
class KernelMemory {
public:
  virtual ~KernelMemory() = default;

  /// Allocates zeroed memory of the device, aligned to 256 bytes; the host cannot load from it.
  virtual void* allocate(std::size_t size_bytes) = 0;
  virtual void free(void* memory) noexcept = 0;

  enum class HostMemoryKind {
    memory,
    registers ///< a page of a device's registers
  };
  /// Lets kernels use whole pages of host memory or registers, until unmap(). Returns the address
  /// that kernels use.
  virtual void* map(void* base, std::size_t size_bytes, HostMemoryKind part) = 0;
  virtual void unmap(void* base) noexcept = 0;

  /// Copies between any host memory and memory of the device; complete on return.
  virtual void copy(void* to, const void* from, std::size_t size_bytes) = 0;
};

/// An array in memory of the device, zeroed or initialised with `values`.
template <class T>
class KernelArray {
public:
  KernelArray(std::shared_ptr<KernelMemory> memory, std::size_t count)
      : memory_(std::move(memory)),
        data_(static_cast<T*>(memory_->allocate((count > 0 ? count : 1) * sizeof(T)))) {}
  KernelArray(std::shared_ptr<KernelMemory> memory, const std::vector<T>& values)
      : KernelArray(std::move(memory), values.size()) {
    memory_->copy(data_, values.data(), values.size() * sizeof(T));
  }
  ~KernelArray() { memory_->free(data_); }
  KernelArray(const KernelArray&) = delete;
  KernelArray& operator=(const KernelArray&) = delete;
  T* data() const { return data_; }

private:
  std::shared_ptr<KernelMemory> memory_;
  T* data_;
};

/// Host memory that kernels can use while this object exists.
class KernelMapping {
public:
  KernelMapping(std::shared_ptr<KernelMemory> memory, void* base, std::size_t size_bytes,
                KernelMemory::HostMemoryKind part = KernelMemory::HostMemoryKind::memory)
      : memory_(std::move(memory)), base_(static_cast<std::byte*>(base)), size_bytes_(size_bytes),
        seen_(static_cast<std::byte*>(memory_->map(base, size_bytes, part))) {}
  ~KernelMapping() { memory_->unmap(base_); }
  KernelMapping(const KernelMapping&) = delete;
  KernelMapping& operator=(const KernelMapping&) = delete;

  bool holds(const void* address) const {
    return address >= base_ && address < base_ + size_bytes_;
  }
  /// The kernels' address of an address in this memory.
  template <class T>
  T* seen(T* address) const {
    return reinterpret_cast<T*>(seen_ + (reinterpret_cast<std::byte*>(address) - base_));
  }

private:
  std::shared_ptr<KernelMemory> memory_;
  std::byte* base_;
  std::size_t size_bytes_;
  std::byte* seen_;
};

} // namespace shmemctl
