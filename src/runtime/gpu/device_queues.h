// The HCA's QPs as kernels use them: a copy of the QP table with the device's addresses, and the
// words that kernels share.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "src/abi/device_network.h"
#include "src/runtime/gpu/kernel_memory.h"
#include "transports/ibgda/ibgda.h"

namespace shmemctl {

class DeviceQueues {
public:
  /// Throws Error (unavailable).
  DeviceQueues(ibgda::IbgdaTransport& transport, std::shared_ptr<KernelMemory> memory, int n_pes);
  ~DeviceQueues();
  DeviceQueues(const DeviceQueues&) = delete;
  DeviceQueues& operator=(const DeviceQueues&) = delete;

  bool reaches(int pe) const {
    return mapped_[static_cast<std::size_t>(pe) * queues_per_pe_] != nullptr;
  }
  /// Sets the members of `network` that describe the QPs.
  void describe(DeviceNetwork& network) const;
  /// Copies the table again; call it after more memory was registered with the transport.
  void refresh();

private:
  struct Queue;
  std::shared_ptr<KernelMapping> register_page(const void* address);
  void map_queues(mlx5::TableImage& image);
  void copy_table(mlx5::TableImage image);

  static constexpr std::size_t n_results = 1024;

  ibgda::IbgdaTransport& transport_;
  std::shared_ptr<KernelMemory> memory_;
  std::uint32_t lane_, n_lanes_; ///< the kernels' QP sets: the first one, and their number
  std::size_t results_bytes_;
  std::unique_ptr<void, void (*)(void*)> results_; ///< QpResult[n_results]
  std::optional<KernelMapping> results_mapping_;
  struct Number {
    std::uint32_t pe, path, qp_set;
  };
  /// Calls `use(index, number)` for each QP, with its index in the arrays below.
  template <class Use>
  void each_queue(const mlx5::QpTable& table, const Use& use) const;

  /// Pages of registers by address. Queues may share a page, which is mapped once, and as long as
  /// any queue uses it.
  std::map<std::uintptr_t, std::weak_ptr<KernelMapping>> register_pages_;
  std::uint32_t queues_per_pe_;
  std::vector<std::unique_ptr<Queue>> mapped_; ///< by PE and QP; nullptr: none
  KernelArray<mlx5::QpState> words_;           ///< by PE and QP
  KernelArray<QpMarks> marks_;                 ///< by PE and QP
  KernelArray<std::uint64_t> locks_;
  /// All tables so far, because running kernels may still use an older one. Arrays of words, so
  /// that they are aligned.
  std::deque<KernelArray<std::uint64_t>> tables_;
};

} // namespace shmemctl
