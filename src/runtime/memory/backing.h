// Kinds of physical memory that a symmetric region can consist of.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// A piece of physical memory. Goes away when all that mapped or hold it have.
class Chunk {
public:
  virtual ~Chunk() = default;
  virtual std::size_t size_bytes() const = 0;
  /// Maps it at `address` (in a reserved range). Throws Error (unavailable).
  virtual void map(void* address) = 0;
  /// What a peer process imports; -1 if peers need none (threads of one process).
  virtual int descriptor() const = 0;
};

/// Reserved address space without memory, into which chunks of one backing are mapped. Its end
/// unmaps them.
class AddressRange {
public:
  virtual ~AddressRange() = default;
  virtual std::byte* base() const = 0;
  /// Unmaps whole chunks; the address space stays reserved.
  virtual void clear(std::byte* at, std::size_t size_bytes) noexcept = 0;
};

class HeapBacking {
public:
  virtual ~HeapBacking() = default;
  /// "memfd", "devshm", "cuda-vmm".
  virtual const char* kind() const = 0;
  virtual std::size_t granularity_bytes() const = 0;
  /// Whether processors of the host can load and store in this memory.
  virtual bool is_host_memory() const { return true; }
  /// Aligned to the granularity. Throws Error (unavailable) that names the limit there is.
  virtual std::unique_ptr<AddressRange> reserve(std::size_t size_bytes) = 0;
  /// Committed memory, zeroed: a lack of it is an Error (unavailable) here, never a SIGBUS later.
  virtual std::unique_ptr<Chunk> create(std::size_t size_bytes) = 0;
  /// The same for memory that is mapped at an address aligned to a small page only.
  virtual std::unique_ptr<Chunk> create_of_small_pages(std::size_t size_bytes) {
    return create(size_bytes);
  }
  /// Takes over a peer's descriptor. Throws Error (unavailable) if it holds less than that.
  virtual std::unique_ptr<Chunk> import(FileDescriptor descriptor, std::size_t size_bytes) = 0;
};

struct HostBackingOptions {
  std::string kind = "auto"; ///< "memfd", "devshm" (an unnamed file in /dev/shm), "auto"
  /// If the system has free huge pages and the size is a multiple of theirs.
  bool huge_pages = true;
  /// NUMA node of the pages as long as it has any free; -1: no preference. A kernel that refuses is
  /// not an error: it is logged once.
  int numa_node = -1;
};
std::unique_ptr<HeapBacking> make_host_backing(const HostBackingOptions& options);

/// Reserved address space without memory; released at the end. Throws Error (unavailable) that
/// names the limit (ulimit -v) if there is one.
class Reservation {
public:
  Reservation() = default;
  explicit Reservation(std::size_t size_bytes, std::size_t alignment_bytes = 2u << 20);
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();
  std::byte* base() const { return base_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Unmaps a part of it (whole pages); the address space stays reserved.
  void clear(std::byte* at, std::size_t size_bytes) noexcept;

private:
  std::byte* base_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// Sparsely used memory, of small pages: zeroed; `used_bytes` of it are written at once, and the
/// rest takes no memory until it is touched. A shortage of memory is then up to the kernel, as for
/// private memory; where that would be a SIGBUS (/dev/shm has a size limit) all of it is committed.
/// Throws Error (unavailable).
/// @param backing of host memory: its kind is used
std::unique_ptr<Chunk> create_sparse(HeapBacking& backing, std::size_t size_bytes,
                                     std::size_t used_bytes);

} // namespace shmemctl
