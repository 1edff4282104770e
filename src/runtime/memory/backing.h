// Kinds of physical memory that a symmetric region can consist of.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// A piece of physical memory. It is freed when no mapping and no handle of it is left.
class Chunk {
public:
  virtual ~Chunk() = default;
  virtual std::size_t size_bytes() const = 0;
  /// Maps it at `address` (in a reserved range). Throws Error (unavailable).
  virtual void map(void* address) = 0;
  /// The descriptor that peer processes import; -1 if there is none.
  virtual int descriptor() const = 0;
};

/// Reserved address space without memory, into which chunks of one backing are mapped. The
/// destructor unmaps them.
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
  /// "memfd", "devshm", "cuda-vmm" or "cuda-host".
  virtual const char* kind() const = 0;
  virtual std::size_t granularity_bytes() const = 0;
  /// Whether the host's CPUs can load and store in this memory.
  virtual bool is_host_memory() const { return true; }
  /// Reserves address space, aligned to the granularity. Throws Error (unavailable) that names the
  /// limit, if there is one.
  virtual std::unique_ptr<AddressRange> reserve(std::size_t size_bytes) = 0;
  /// Zeroed, committed memory: if there is not enough, throws Error (unavailable) here, so that no
  /// SIGBUS occurs later.
  virtual std::unique_ptr<Chunk> create(std::size_t size_bytes) = 0;
  /// The same for memory that is mapped at an address that is aligned only to a small page.
  virtual std::unique_ptr<Chunk> create_of_small_pages(std::size_t size_bytes) {
    return create(size_bytes);
  }
  /// Takes over a peer's descriptor. Throws Error (unavailable), for host memory also if it is
  /// smaller than `size_bytes`.
  virtual std::unique_ptr<Chunk> import(FileDescriptor descriptor, std::size_t size_bytes) = 0;
};

struct HostBackingOptions {
  std::string kind = "auto"; ///< "memfd", "devshm" (an unnamed file in /dev/shm), "auto"
  /// Huge pages for sizes that are multiples of 2 MiB: of the pool (memfd), or else by madvise().
  bool huge_pages = true;
  /// Preferred NUMA node of the pages, used as long as it has free memory; -1: no preference. If
  /// the kernel refuses the preference, that is only logged, once.
  int numa_node = -1;
};
std::unique_ptr<HeapBacking> make_host_backing(const HostBackingOptions& options);

/// Reserved address space without memory; the destructor releases it. Throws Error (unavailable)
/// that names the limit (ulimit -v) if there is one.
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

/// Sparsely used, zeroed memory of small pages. Only `used_bytes` must be available; the pages are
/// allocated when they are touched, and the kernel handles a shortage of memory as for private
/// memory. If a shortage would be a SIGBUS (/dev/shm has a size limit), all of it is committed
/// instead. Throws Error (unavailable).
/// @param backing a backing of host memory, whose kind of memory is used
/// @param used_bytes part that the caller writes at once
std::unique_ptr<Chunk> create_sparse(HeapBacking& backing, std::size_t size_bytes,
                                     std::size_t used_bytes);

} // namespace shmemctl
