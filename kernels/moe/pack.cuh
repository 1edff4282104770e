// Packing per expert. Every block counts all rows by itself, so that blocks need not synchronise: a
// low-latency dispatch has few rows.
#pragma once

#include "kernels/device/symmetric_address.cuh"
#include "kernels/device/wait.cuh"
#include "kernels/moe/pack.h"
#include "src/model/moe/plan.h"

namespace shmemctl::moe {

inline constexpr int pack_threads = 512;
/// Experts of received rows that a block caches in shared memory; those of further rows are read
/// from the metadata again.
inline constexpr std::int32_t cached_choices = 8192;
/// The shared memory that a block needs.
constexpr std::size_t pack_shared_bytes(std::int32_t local_experts) {
  return 2 * static_cast<std::size_t>(local_experts) * sizeof(std::int32_t) +
         cached_choices * sizeof(std::int16_t);
}
static_assert(max_packed_experts <= 32768, "they are kept as 16 bits");

/// @tparam ranks_limit max_ranks_of_kernels, or max_ranks if some are reached by a network
template <int ranks_limit>
class Packer {
public:
  struct Shared {
    std::int32_t first[ranks_limit + 1]; ///< rows before each source's; then all rows
    std::uint64_t received;              ///< dispatches received so far
    std::int32_t experts[max_top_k];     ///< experts of the present row; no_expert: on another rank
    std::int32_t output_rows[max_top_k];
  };

  /// @param by_expert pack_shared_bytes() of shared memory
  __device__ Packer(const DeviceJob& job, const PackArguments& all, Shared& shared,
                    std::int32_t* by_expert)
      : job_(job), all_(all), shared_(shared), layout_(all.shape, all.scales),
        local_(all.shape.local_experts()), offsets_(by_expert), choice_(by_expert + local_),
        kept_(reinterpret_cast<std::int16_t*>(by_expert + 2 * local_)),
        thread_(static_cast<std::int32_t>(threadIdx.x)),
        threads_(static_cast<std::int32_t>(blockDim.x)) {}

  __device__ void run() {
    find_sources();
    const auto blocks = static_cast<std::int32_t>(gridDim.x);
    auto row = static_cast<std::int32_t>(blockIdx.x);
    prefetch(row); // in flight while the experts are counted
    count_choices();
    find_offsets();
    while (row < rows()) {
      find_output_rows(row);
      copy(row);
      __syncthreads(); // all threads have read the destinations
      row += blocks;
      prefetch(row);
    }
  }

private:
  __device__ std::int32_t rows() const { return shared_.first[ranks_limit]; }
  /// Slot of a received row. A loop over many ranks would be unrolled at each use of the function,
  /// and the run time of such a short kernel is mostly that of fetching its instructions.
  __device__ std::int32_t slot_of(std::int32_t row) const {
    std::int32_t source = 0;
    if constexpr (ranks_limit <= 8) {
#pragma unroll
      for (int rank = 1; rank < ranks_limit; ++rank)
        source += shared_.first[rank] <= row ? 1 : 0;
    } else { // binary search for the last source whose first row is not after `row`
#pragma unroll
      for (int step = ranks_limit / 2; step > 0; step /= 2)
        source += shared_.first[source + step] <= row ? step : 0;
    }
    return fixed_slot(all_.shape, source, row - shared_.first[source]);
  }
  __device__ const std::uint32_t* record_of(std::int32_t row) const {
    return reinterpret_cast<const std::uint32_t*>(records_) +
           static_cast<std::int64_t>(slot_of(row)) * layout_.words();
  }
  /// The local expert of the i-th choice, counted over all rows; no_expert if the choice is an
  /// expert of another rank.
  __device__ std::int32_t read_expert(std::int32_t i) const {
    return static_cast<std::int32_t>(
        record_of(i / all_.shape.top_k)[layout_.experts() + i % all_.shape.top_k]);
  }

  __device__ std::int32_t rows_from(std::int32_t source) const {
    const std::int32_t count = source < all_.shape.n_ranks ? all_.counts[source] : 0;
    return count > 0 ? count : 0; // -1: the rank is masked
  }
  __device__ void find_sources() {
    if (thread_ < 32) { // in parallel: loads that wait for each other take a microsecond
      constexpr int each = ranks_limit <= 32 ? 1 : ranks_limit / 32;
      std::int32_t counts[each], own_rows = 0;
#pragma unroll
      for (int i = 0; i < each; ++i)
        own_rows += counts[i] = rows_from(thread_ * each + i);
      std::int32_t before = sum_up_to(own_rows) - own_rows;
#pragma unroll
      for (int i = 0; i < each; ++i) {
        if (const int source = thread_ * each + i; source < ranks_limit)
          shared_.first[source] = before;
        before += counts[i];
      }
      if (thread_ == 31) // the end of the last source's rows
        shared_.first[ranks_limit] = before;
    } else if (thread_ == 32) { // one thread of each block: loads by all would queue for the word
      shared_.received = device::load_relaxed(&all_.memory.flags->received);
    }
#pragma unroll 1
    for (std::int32_t expert = thread_; expert < local_; expert += threads_)
      offsets_[expert] = choice_[expert] = 0;
    __syncthreads();
    const std::int64_t first_slot =
        buffer_of_epoch(shared_.received) * static_cast<std::int64_t>(all_.shape.max_rows());
    rows_ = all_.memory.rows + first_slot * all_.shape.value_bytes(format_of(all_.scales));
    records_ = all_.memory.records + first_slot * layout_.bytes();
  }
  /// A thread handles the same choice of rows at a fixed stride, so the loop needs no division.
  __device__ void count_choices() {
    const std::int32_t top_k = all_.shape.top_k, at_once = threads_ / top_k;
    const std::int32_t first = thread_ / top_k, choice = thread_ % top_k;
#pragma unroll 4
    for (std::int32_t row = first < at_once ? first : rows(); row < rows(); row += at_once) {
      const auto expert = static_cast<std::int32_t>(record_of(row)[layout_.experts() + choice]);
      if (const std::int32_t i = row * top_k + choice; i < cached_choices)
        kept_[i] = static_cast<std::int16_t>(expert);
      if (expert != no_expert)
        atomicAdd(&offsets_[expert], 1);
    }
    __syncthreads();
  }
  /// Called by a warp: the sum of `value` over this lane and those before it.
  __device__ std::int32_t sum_up_to(std::int32_t value) const {
    std::int32_t sum = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t other = __shfl_up_sync(0xffffffffu, sum, distance);
      sum += thread_ >= distance ? other : 0;
    }
    return sum;
  }
  __device__ std::int32_t aligned(std::int32_t count) const {
    const std::int32_t alignment = all_.shape.expert_alignment;
    return alignment == 1 ? count : aligned_count(count, alignment);
  }
  /// Exclusive prefix sum of the counts, in place, by the first warp: each lane takes consecutive
  /// experts. Block 0 writes counts and offsets to the outputs.
  __device__ void find_offsets() {
    if (thread_ < 32) {
      const std::int32_t each = (local_ + 31) / 32, begin = thread_ * each;
      const std::int32_t end = begin + each < local_ ? begin + each : local_;
      std::int32_t own_rows = 0;
#pragma unroll 1
      for (std::int32_t expert = begin; expert < end; ++expert)
        own_rows += aligned(offsets_[expert]);
      const std::int32_t sum = sum_up_to(own_rows);
      std::int32_t before = sum - own_rows;
#pragma unroll 1
      for (std::int32_t expert = begin; expert < end; ++expert) {
        const std::int32_t count = offsets_[expert];
        offsets_[expert] = before;
        if (blockIdx.x == 0) {
          all_.packed.counts[expert] = count;
          all_.packed.offsets[expert] = before;
        }
        before += aligned(count);
      }
      if (blockIdx.x == 0 && thread_ == 31)
        all_.packed.offsets[local_] = sum;
    }
    __syncthreads();
  }
  /// Loads what does not depend on the packed rows: 16 bytes per thread, and finds the address to
  /// which the packed row is reported (find_output_rows()).
  __device__ void prefetch(std::int32_t row) {
    if (row >= rows())
      return;
    if (thread_ < all_.shape.value_bytes(format_of(all_.scales)) / 16)
      first_ = values_of(row)[thread_];
    if (thread_ < all_.shape.top_k) {
      const std::uint32_t* const record = record_of(row);
      std::int32_t* const at =
          all_.packed.output_rows +
          static_cast<std::int64_t>(record[layout_.token()]) * all_.shape.top_k + thread_;
      output_row_at_source_ =
          device::pointer_to(job_, at, static_cast<std::int32_t>(record[layout_.source()]));
      if (output_row_at_source_ == nullptr)
        output_row_at_source_ = all_.packed.output_rows_by_slot +
                                static_cast<std::int64_t>(slot_of(row)) * all_.shape.top_k +
                                thread_;
    }
  }
  __device__ const uint4* values_of(std::int32_t row) const {
    return reinterpret_cast<const uint4*>(rows_ +
                                          static_cast<std::int64_t>(slot_of(row)) *
                                              all_.shape.value_bytes(format_of(all_.scales)));
  }
  /// Finds the packed rows of a row, which come after the earlier rows of the same experts, and
  /// reports them to the token's source rank, or in output_rows_by_slot if that is not mapped.
  __device__ void find_output_rows(std::int32_t row) {
    const std::int32_t top_k = all_.shape.top_k;
    if (thread_ < top_k) {
      const std::int32_t choice = row * top_k + thread_;
      const std::int32_t expert = choice < cached_choices ? kept_[choice] : read_expert(choice);
      shared_.experts[thread_] = expert;
      if (expert != no_expert) { // a token chooses each expert at most once
        choice_[expert] = thread_ + 1;
        shared_.output_rows[thread_] = offsets_[expert];
      }
    }
    __syncthreads();
    const std::int32_t before = row * top_k;
    std::int32_t i = thread_;
#pragma unroll 4
    for (; i < before && i < cached_choices; i += threads_)
      count_before(kept_[i]);
#pragma unroll 1
    for (; i < before; i += threads_)
      count_before(read_expert(i));
    __syncthreads();
    if (thread_ < top_k && shared_.experts[thread_] != no_expert) {
      choice_[shared_.experts[thread_]] = 0;
      *output_row_at_source_ = shared_.output_rows[thread_];
    }
  }
  /// Counts an earlier row's choice of `expert` if the present row has chosen this expert, too.
  __device__ void count_before(std::int32_t expert) const {
    if (expert != no_expert && choice_[expert] != 0)
      atomicAdd(&shared_.output_rows[choice_[expert] - 1], 1);
  }
  /// Copies a row and its metadata to all its packed rows. Each piece is loaded once.
  __device__ void copy(std::int32_t row) const {
    const std::int32_t value_bytes = all_.shape.value_bytes(format_of(all_.scales));
    const uint4* const values = values_of(row);
#pragma unroll 1
    for (std::int32_t unit = thread_; unit < value_bytes / 16; unit += threads_)
      store(unit < threads_ ? first_ : values[unit], all_.packed.rows, value_bytes, unit);
    const auto* const record = reinterpret_cast<const uint4*>(record_of(row));
#pragma unroll 1
    for (std::int32_t unit = thread_; unit < layout_.bytes() / 16; unit += threads_)
      store(record[unit], all_.packed.records, layout_.bytes(), unit);
  }
  /// Stores 16 bytes of the current row to all its packed rows.
  __device__ void store(const uint4& value, std::byte* packed, std::int32_t row_bytes,
                        std::int32_t unit) const {
#pragma unroll 4
    for (std::int32_t k = 0; k < all_.shape.top_k; ++k)
      if (shared_.experts[k] != no_expert)
        reinterpret_cast<uint4*>(packed + static_cast<std::int64_t>(shared_.output_rows[k]) *
                                              row_bytes)[unit] = value;
  }

  const DeviceJob& job_;
  const PackArguments& all_;
  Shared& shared_;
  MetadataLayout layout_;
  std::int32_t local_;
  std::int32_t* offsets_; ///< by local expert: at first its count, then its first packed row
  std::int32_t* choice_;  ///< by local expert: its choice in the present row, from 1; 0: none
  std::int16_t* kept_;    ///< by choice, counted over all rows: the local expert
  std::int32_t thread_, threads_;
  uint4 first_{}; ///< first part of the present row
  std::int32_t* output_row_at_source_ =
      nullptr; ///< where the packed row for the row's expert number thread_ is reported
  const std::byte* rows_ = nullptr; ///< rows of the buffer that was filled last
  const std::byte* records_ = nullptr;
};

template <int ranks_limit>
__global__ void __launch_bounds__(pack_threads, pack_blocks_per_sm)
    pack(const __grid_constant__ DeviceJob job, const __grid_constant__ PackArguments all) {
  __shared__ typename Packer<ranks_limit>::Shared shared;
  extern __shared__ std::int32_t by_expert[];
  Packer<ranks_limit>(job, all, shared, by_expert).run();
}

} // namespace shmemctl::moe
