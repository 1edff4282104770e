// The symmetric memory of kernels: the heap and the team flags ("cells"), in memory of one kind,
// and which PEs can map each other's memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/runtime/cuda/device.h"
#include "src/runtime/gpu/gpu_runtime.h"
#include "src/runtime/memory/symmetric_heap.h"

namespace shmemctl {

/// One symmetric region of this memory.
class GpuRegion : public HeapMemory {
public:
  /// The address at which that PE's part is mapped here; nullptr if it is not.
  virtual std::byte* part_of(int pe) const = 0;
};

class GpuMemory {
public:
  /// Pieces of the regions begin and end at multiples of this, unless the driver requires more.
  static constexpr std::size_t granularity_bytes = std::size_t{2} << 20;

  /// Collective. Throws Error.
  GpuMemory(std::shared_ptr<const cuda::Device> device, GpuSetup& setup, std::string kind);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  const std::string& kind() const { return kind_; }
  GpuRegion& heap() { return *heap_; }
  GpuRegion& cells() { return *cells_; }
  RegionView view(int region) const;
  /// By PE: "" if its memory is mapped here and that PE maps this PE's memory; else why not.
  const std::vector<std::string>& why_not_mapped() const { return why_not_mapped_; }
  bool is_host_memory() const { return kind_ == "host"; }
  /// The regions' memory, for NICs; nullptr if it is host memory.
  const std::shared_ptr<const DeviceMemory>& device_memory() const { return device_memory_; }

private:
  /// [pe][other]: "" if the first can map the other's memory, else why not.
  using Matrix = std::vector<std::vector<std::string>>;
  bool is_fabric() const { return kind_ == "fabric"; }
  /// The PEs that may be able to map this PE's memory, including itself; the same list on all of
  /// them.
  std::vector<int> candidates(const GpuSetup& setup) const;
  std::unique_ptr<LocalPeers> open_peers(const GpuSetup& setup, const std::vector<int>& pes,
                                         std::uint8_t what_for) const;
  void make_of_chunks(GpuSetup& setup, std::size_t heap_bytes);
  void make_of_ipc(GpuSetup& setup, std::size_t heap_bytes);
  Matrix try_mapping(GpuSetup& setup);
  Matrix gather(GpuSetup& setup, const std::vector<std::string>& reasons) const;
  void explain(const GpuSetup& setup, const Matrix& why_not, const std::vector<int>& group);

  std::shared_ptr<const cuda::Device> device_;
  std::string kind_;
  std::shared_ptr<const DeviceMemory> device_memory_;
  std::vector<std::string> why_not_mapped_;
  std::unique_ptr<LocalPeers> peers_;
  std::unique_ptr<HeapBacking> backing_;
  std::unique_ptr<GpuRegion> cells_, heap_;
};

// A symmetric region by CUDA IPC: cuMemAlloc and IPC handles.

/// Completely committed from the start, so it cannot grow. The driver chooses the addresses of
/// peers' parts.
class IpcRegion final : public GpuRegion {
public:
  /// Allocates and zeroes this PE's part. Throws Error (unavailable).
  IpcRegion(std::string name, std::shared_ptr<const cuda::Device> device,
            const cuda::Stream& stream, std::size_t size_bytes, int pe, std::size_t n_pes);
  ~IpcRegion() override;
  IpcRegion(const IpcRegion&) = delete;
  IpcRegion& operator=(const IpcRegion&) = delete;

  /// The IPC handle that open() needs on other PEs: arbitrary bytes.
  std::string handle() const;
  /// Maps that PE's part here. Throws Error (unavailable).
  void open(int pe, const std::string& handle);
  /// Undoes open().
  void close(int pe) noexcept;

  std::byte* part_of(int pe) const override;
  std::byte* base() const override { return own_.data(); }
  std::size_t size_bytes() const override { return own_.size_bytes(); }
  std::size_t stride_bytes() const override { return own_.size_bytes(); }
  void grow(std::size_t more_bytes, const Deadline& deadline) override;

private:
  std::string name_;
  std::shared_ptr<const cuda::Device> device_;
  int pe_;
  cuda::DeviceBuffer own_;
  std::vector<std::byte*> parts_; ///< by PE; nullptr: not mapped
};

// Whether GPUs can map each other's memory, by a query and by a trial.

/// Why, according to CUDA, this device's kernels cannot use the memory of the device with this
/// UUID: no peer access, or no native atomics on the link. "" if they can, or if that device is not
/// visible to this process (CUDA_VISIBLE_DEVICES); only a trial then shows access, and nothing
/// shows atomics.
std::string why_no_peer_access(const cuda::Device& device, const std::string& uuid);

/// Collective over `candidates`, the PEs of the slots of `peers`: every PE exports a chunk of the
/// backing, and maps and reads the others' chunks. Returns by PE the reason why this failed; "" for
/// PEs with which it succeeded, and for PEs that are not candidates. Throws Error for a failure on
/// this PE itself.
std::vector<std::string> try_vmm_mapping(const std::shared_ptr<const cuda::Device>& device,
                                         HeapBacking& backing, LocalPeers& peers,
                                         const std::vector<int>& candidates, const GpuSetup& setup,
                                         const Deadline& deadline);

} // namespace shmemctl
