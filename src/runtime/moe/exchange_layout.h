// The layouts of the memory of an exchange and of a plan, for each MoePath.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/moe/high_throughput_internode.h"
#include "src/runtime/moe/exchange_config.h"
#include "src/runtime/moe/moe_path.h"

namespace shmemctl::moe {

/// Memory of one rank that is allocated for the limits of the configuration, whatever the routing
/// is.
struct MemoryUse {
  std::string what;    ///< "received rows"
  std::string formula; ///< "ranks * max_tokens * hidden * 2 B"
  std::uint64_t size_bytes = 0;
};

/// A part of a block of memory. Its size is 0 if the path does not use it.
struct GpuRegion {
  std::size_t offset = 0, size_bytes = 0;
};

/// Consecutive regions, aligned to 256 bytes, with guard bytes around each that must not be
/// written: checks find stray stores in them.
class GpuRegions {
public:
  std::size_t size_bytes = 0; ///< end of the last region, from the beginning of the block

protected:
  /// @param begin offset of the first region's guard bytes; a multiple of 256
  explicit GpuRegions(std::size_t guard_bytes, std::size_t begin = 0)
      : size_bytes(begin), guard_bytes_(guard_bytes) {}
  /// @return a region of `part_bytes`, rounded up to 16
  GpuRegion add(std::size_t part_bytes);

private:
  std::size_t guard_bytes_;
};

/// The memory of an exchange, which is symmetric, on the GPU's heap. The comments give the bytes of
/// each region for n ranks, T tokens at most, k choices, H channels, v bytes of a value, R bytes of
/// a record (MetadataLayout::bytes()), o output rows per row (ExchangeConfig::outputs_per_row()),
/// and m nodes.
struct ExchangeLayout : GpuRegions {
  explicit ExchangeLayout(const ExchangeConfig& config, const MoePath& path,
                          std::size_t guard_bytes = 0);

  GpuRegion flags;              ///< CallFlags, or LowLatencyFlags
  GpuRegion expert_count_flags; ///< 16 * experts
  GpuRegion rows;               ///< n * T * vH; low latency: twice that
  GpuRegion records;            ///< n * T * R; low latency: twice that
  GpuRegion outputs;            ///< n * T * o * 2H; by expert: packed rows * 2H
  GpuRegion output_weights;     ///< if weights are returned: n * T * 4k
  // If rows are packed by expert; P = max_packed_rows().
  GpuRegion output_rows;    ///< T * 4k
  GpuRegion packed_rows;    ///< P * vH
  GpuRegion packed_records; ///< P * R
  // High throughput over a network; r and s are InternodeShape::crossing_bytes() and sum_bytes().
  GpuRegion rails;                    ///< RailFlags
  GpuRegion counts_out, counts_in;    ///< 2 * n * message_words() * 4
  GpuRegion row_signals, sum_signals; ///< (m - 1) * T * 8
  GpuRegion rows_out, rows_in;        ///< (m - 1) * T * r
  GpuRegion sums_out, sums_in;        ///< (m - 1) * T * s
  // Low latency over a network, which also has rows_out: 2 * T * vH.
  GpuRegion sent_row_signals; ///< 4 * n * T * 8
  GpuRegion output_signals;   ///< n * T * o * 8
  GpuRegion records_out;      ///< 2 * n * T * R
  GpuRegion returned_outputs; ///< n * T * o * 2H
  GpuRegion cast_rows;        ///< FP8: T * H
  GpuRegion cast_scales;      ///< FP8: T * H / 128 * 4

  // Lists of the regions that are not empty:

  /// Regions of rows, records, sums and returned outputs that arrive in a dispatch or a combine, or
  /// that are packed from them.
  std::vector<const GpuRegion*> received() const;
  /// Regions of rows, records and sums from which a network sends.
  std::vector<const GpuRegion*> sent() const;
  std::vector<MemoryUse> uses;
};

/// The memory of a plan, which only this rank accesses.
struct PlanLayout : GpuRegions {
  explicit PlanLayout(const ExchangeConfig& config, const MoePath& path,
                      std::size_t guard_bytes = 0, std::size_t begin = 0);

  GpuRegion slots;         ///< T * n * 4
  GpuRegion bases;         ///< n * 4
  GpuRegion counts;        ///< n * n * 4
  GpuRegion expert_counts; ///< local experts * 4
  // If rows are packed by expert.
  GpuRegion packed_counts;       ///< local experts * 4
  GpuRegion packed_offsets;      ///< (local experts + 1) * 4
  GpuRegion output_rows_by_slot; ///< over a network: n * T * 4k
  // High throughput over a network.
  GpuRegion all_bases;       ///< n * n * 4
  GpuRegion crossing_slots;  ///< T * m * 4
  GpuRegion crossing_tokens; ///< T * m * 4
  GpuRegion crossing_counts; ///< n * m * 4

  /// The regions that are not empty.
  std::vector<const GpuRegion*> all() const;
  std::vector<MemoryUse> uses;
};

/// The shape with chunks of one row, which need the most signal words. For a path that
/// is_internode().
InternodeShape internode_shape(const ExchangeConfig& config, const MoePath& path);

} // namespace shmemctl::moe
