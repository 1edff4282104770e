// Low-latency dispatch: blocks 0 to senders - 1 send, the last block receives.
#pragma once

#include "kernels/moe/low_latency_common.cuh"
#include "kernels/moe/token_counts.h"
#include "kernels/moe/vector_cast.cuh"

namespace shmemctl::moe {

inline constexpr int send_threads = 448; ///< 16 channels per thread for rows of 7168 channels

/// The sending side: a block, its tokens and their destinations.
class LowLatencySender {
public:
  /// The block's shared memory; arrays by rank.
  struct Shared {
    std::int32_t sent[max_ranks_of_kernels], before[max_ranks_of_kernels];
    std::byte* rows[max_ranks_of_kernels]; ///< destination row of the token; nullptr: not sent to
                                           ///< that rank
    std::uint32_t* records[max_ranks_of_kernels];
    std::uint32_t own_ranks; ///< destination ranks of the token
    static constexpr std::int32_t tokens = 512;
    std::uint32_t ranks[tokens]; ///< destination ranks of a run of tokens
  };

  __device__ LowLatencySender(const DeviceJob& job, const LowLatencyDispatch& all, Shared& shared,
                              std::int32_t senders, std::uint64_t epoch)
      : job_(job), all_(all), shared_(shared), layout_(all.shape, all.scales),
        token_of_choice_(all.shape.top_k), rank_of_expert_(all.shape.local_experts()),
        senders_(senders), epoch_(epoch), n_(all.shape.n_ranks) {
    // Thread r serves rank r. Loaded early, because each load takes as long as a step below.
    const auto rank = static_cast<std::int32_t>(threadIdx.x);
    if (rank < n_) {
      masked_ = device::load_relaxed(&all.memory.flags->masked[rank]) != 0;
      const LowLatencyMemory& memory = all.memory;
      const std::int64_t row =
          static_cast<std::int64_t>(buffer_of_dispatch(epoch)) * all.shape.max_rows() +
          fixed_slot(all.shape, job.pe, 0);
      rows_ = device::pointer_to(job, memory.rows, rank) +
              row * all.shape.value_bytes(format_of(all.scales));
      records_ = reinterpret_cast<std::uint32_t*>(device::pointer_to(job, memory.records, rank)) +
                 row * layout_.words();
      word_ = device::pointer_to(
          job, &memory.flags->block_counts[buffer_of_dispatch(epoch)][job.pe][blockIdx.x], rank);
      begun_ = device::pointer_to(job, &memory.flags->begun[job.pe], rank);
    }
  }

  __device__ void run() {
    const auto block = static_cast<std::int32_t>(blockIdx.x);
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    if (thread < n_)
      shared_.sent[thread] = 0;
    for (std::int32_t token = block; token < all_.tokens; token += senders_) {
      prefetch(token);
      find_slots(token);
      if (token == 0)
        signal_begin();
      send(token);
      __syncthreads(); // all threads have read the destinations
    }
    if (all_.tokens == 0)
      signal_begin();
    // The block barrier and the release together order all row stores of the block before its count
    // flags: rank R may read the rows once it has acquired the flag.
    __syncthreads();
    publish();
  }

private:
  /// Called by the first block, as late as possible before its first row store: by then the loads
  /// of the masks have completed.
  __device__ void signal_begin() const {
    if (static_cast<std::int32_t>(threadIdx.x) < n_ && !masked_)
      device::store_relaxed(begun_, epoch_);
  }
  __device__ void publish() const {
    const auto rank = static_cast<std::int32_t>(threadIdx.x);
    if (rank >= n_ || masked_)
      return;
    const std::uint64_t word = count_word(epoch_, packed_count(senders_, shared_.sent[rank]));
    device::store_release(word_, word);
  }
  /// Loads the first channels before the destinations are known.
  __device__ void prefetch(std::int32_t token) {
    const auto* const row = row_of(token);
    const auto unit = static_cast<std::int32_t>(threadIdx.x);
    if (unit < all_.shape.hidden / 16) {
      first_[0] = __ldg(row + 2 * unit);
      first_[1] = __ldg(row + 2 * unit + 1);
    }
  }
  __device__ const uint4* row_of(std::int32_t token) const {
    return reinterpret_cast<const uint4*>(all_.values +
                                          static_cast<std::int64_t>(token) * all_.shape.hidden);
  }
  /// The slot of the token at each destination rank: the number of earlier tokens that go there.
  __device__ void find_slots(std::int32_t token) {
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    if (thread < n_)
      shared_.before[thread] = 0;
    for (std::int32_t first = 0; first <= token; first += Shared::tokens) {
      const std::int32_t left = token + 1 - first;
      const std::int32_t count = left < Shared::tokens ? left : Shared::tokens;
      find_ranks(first, count);
      count_tokens(token - first, count);
    }
    if (thread < n_)
      point_to(token, thread);
    __syncthreads();
  }
  /// Fills shared_.ranks for `count` tokens from `first` on. One thread per choice, so that the
  /// loads are in flight together.
  __device__ void find_ranks(std::int32_t first, std::int32_t count) {
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    const auto threads = static_cast<std::int32_t>(blockDim.x);
    for (std::int32_t i = thread; i < count; i += threads)
      shared_.ranks[i] = 0;
    __syncthreads();
    const std::int32_t choices = count * all_.shape.top_k;
    const std::int32_t* const experts =
        all_.experts + static_cast<std::int64_t>(first) * all_.shape.top_k;
#pragma unroll 4
    for (std::int32_t i = thread; i < choices; i += threads)
      if (const std::int32_t expert = __ldg(experts + i); expert >= 0)
        atomicOr(&shared_.ranks[token_of_choice_(static_cast<std::uint32_t>(i))],
                 1u << rank_of_expert_(static_cast<std::uint32_t>(expert)));
    __syncthreads();
  }
  /// Counts, by rank, the tokens of the run before index `token`, and adds them to shared_.before.
  __device__ void count_tokens(std::int32_t token, std::int32_t count) {
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    for (std::int32_t first = 0; first < count; first += static_cast<std::int32_t>(blockDim.x)) {
      const std::int32_t i = first + thread;
      const std::uint32_t ranks = i < count ? shared_.ranks[i] : 0;
      if (i == token)
        shared_.own_ranks = ranks;
      for (std::int32_t rank = 0; rank < n_; ++rank) {
        const std::uint32_t votes = __ballot_sync(0xffffffffu, i < token && goes_to(ranks, rank));
        if (thread % 32 == 0 && votes != 0)
          atomicAdd(&shared_.before[rank], __popc(votes));
      }
    }
    __syncthreads();
  }
  /// Sets the token's slot and destination at `rank`. Called by the thread that serves that rank.
  __device__ void point_to(std::int32_t token, std::int32_t rank) {
    const bool goes = goes_to(shared_.own_ranks, rank);
    const std::int32_t slot = goes ? shared_.before[rank] : -1;
    all_.slots[static_cast<std::int64_t>(token) * n_ + rank] = slot;
    shared_.rows[rank] = nullptr;
    if (!goes || masked_)
      return;
    ++shared_.sent[rank];
    shared_.rows[rank] =
        rows_ + static_cast<std::int64_t>(slot) * all_.shape.value_bytes(format_of(all_.scales));
    shared_.records[rank] = records_ + static_cast<std::int64_t>(slot) * layout_.words();
  }

  __device__ void send(std::int32_t token) {
    send_record(token);
    if (all_.scales == Scales::none)
      send_bf16(token);
    else
      send_fp8(token);
  }
  /// Calls act(rank) for each destination rank, starting with the next higher rank.
  template <class Act>
  __device__ void each_rank(const Act& act) const {
    for (std::int32_t i = 0; i < n_; ++i) {
      const std::int32_t rank = (job_.pe + 1 + i) % n_;
      if (shared_.rows[rank] != nullptr)
        act(rank);
    }
  }
  __device__ void send_record(std::int32_t token) const {
    const std::int32_t word = static_cast<std::int32_t>(threadIdx.x) + layout_.experts();
    if (word >= layout_.words())
      return;
    const std::int64_t choices = static_cast<std::int64_t>(token) * all_.shape.top_k;
    each_rank([&](std::int32_t rank) {
      std::uint32_t value = 0;
      if (word < layout_.source()) {
        const bool is_weight = word >= layout_.weights();
        const std::int64_t choice =
            choices + word - (is_weight ? layout_.weights() : layout_.experts());
        const std::int32_t local = all_.shape.local_expert(__ldg(all_.experts + choice), rank);
        value = static_cast<std::uint32_t>(local);
        if (is_weight)
          value = local == no_expert ? 0 : __float_as_uint(__ldg(all_.weights + choice));
      } else if (word == layout_.source()) {
        value = static_cast<std::uint32_t>(job_.pe);
      } else if (word == layout_.token()) {
        value = static_cast<std::uint32_t>(token);
      }
      shared_.records[rank][word] = value;
    });
  }
  __device__ void send_bf16(std::int32_t token) const {
    const std::int32_t units = all_.shape.hidden / 8;
    const uint4* const row = row_of(token);
    for (auto unit = static_cast<std::int32_t>(threadIdx.x); unit < units;
         unit += static_cast<std::int32_t>(blockDim.x)) {
      const uint4 value = __ldg(row + unit);
      each_rank(
          [&](std::int32_t rank) { reinterpret_cast<uint4*>(shared_.rows[rank])[unit] = value; });
    }
  }
  /// 16 channels per thread: eight adjacent threads share a scale, so a warp has four scales.
  __device__ void send_fp8(std::int32_t token) const {
    const std::int32_t units = all_.shape.hidden / 16;
    const uint4* const row = row_of(token);
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (std::int32_t first = 0; first < units; first += static_cast<std::int32_t>(blockDim.x)) {
      const std::int32_t unit = first + static_cast<std::int32_t>(threadIdx.x);
      const bool has_unit = unit < units;
      EightFloats low, high;
      low.set(0);
      high.set(0);
      if (has_unit) {
        low.take(first == 0 ? first_[0] : __ldg(row + 2 * unit));
        high.take(first == 0 ? first_[1] : __ldg(row + 2 * unit + 1));
      }
      float largest = fmaxf(low.largest(), high.largest());
#pragma unroll
      for (int distance = 4; distance > 0; distance /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
      const Fp8Scale scale = scale_of(largest, are_powers(all_.scales));
      const uint2 a = low.as_e4m3(scale.factor), b = high.as_e4m3(scale.factor);
      std::uint32_t bytes = has_unit ? ue8m0_of_scale(scale.scale) : 0u;
      bytes |= __shfl_down_sync(0xffffffffu, bytes, 8) << 8;
      bytes |= __shfl_down_sync(0xffffffffu, bytes, 16) << 16;
      if (!has_unit)
        continue;
      each_rank([&](std::int32_t rank) {
        reinterpret_cast<uint4*>(shared_.rows[rank])[unit] = make_uint4(a.x, a.y, b.x, b.y);
        if (all_.scales == Scales::ue8m0) {
          if (lane == 0)
            shared_.records[rank][unit / 32] = bytes;
        } else if (lane % 8 == 0) {
          shared_.records[rank][unit / 8] = __float_as_uint(scale.scale);
        }
      });
    }
  }

  const DeviceJob& job_;
  const LowLatencyDispatch& all_;
  Shared& shared_;
  MetadataLayout layout_;
  QuickDivision token_of_choice_, rank_of_expert_;
  std::int32_t senders_;
  std::uint64_t epoch_;
  std::int32_t n_;
  uint4 first_[2];
  // For the rank that this thread serves: this rank's first row and record at that rank, and the
  // flags for them.
  bool masked_ = false;
  std::byte* rows_ = nullptr;
  std::uint32_t* records_ = nullptr;
  std::uint64_t* word_ = nullptr;
  std::uint64_t* begun_ = nullptr;
};

/// The receiving side: warp r waits for source rank r.
__device__ inline void receive_counts(const LowLatencyDispatch& all, std::uint64_t epoch) {
  const auto source = static_cast<std::int32_t>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (source >= all.shape.n_ranks)
    return;
  LowLatencyFlags* const flags = all.memory.flags;
  const std::uint64_t begin_ns = device::global_time_ns();
  const std::uint64_t* const words = flags->block_counts[buffer_of_dispatch(epoch)][source];
  // Acquire: makes the row stores of that block visible.
  const auto block_arrived = [&](std::int32_t block) {
    return wait_or_mask(flags, source, all.rank_timeout_ns,
                        [&] { return has_come(device::load_acquire(words + block), epoch); });
  };
  bool arrived = true;
  std::int32_t blocks = 0, rows = 0;
  std::uint64_t begun_ns = begin_ns;
  if (lane == 0) {
    begun_ns = wait_for_begin(flags, source, all.rank_timeout_ns, epoch, words);
    arrived = block_arrived(0);
    blocks = arrived ? blocks_of_count(count_of(device::load_relaxed(words))) : 0;
  }
  blocks = __shfl_sync(0xffffffffu, blocks, 0);
  for (std::int32_t block = lane; block < blocks; block += 32) {
    arrived = block_arrived(block) && arrived;
    rows += arrived ? rows_of_count(count_of(device::load_relaxed(words + block))) : 0;
  }
  const bool all_arrived = __all_sync(0xffffffffu, arrived) != 0;
  rows = static_cast<std::int32_t>(__reduce_add_sync(0xffffffffu, static_cast<unsigned>(rows)));
  if (lane != 0)
    return;
  all.counts[source] = all_arrived ? rows : -1;
  flags->begin_wait_ns[source] += begun_ns - begin_ns;
  count_wait(flags, 0, source, begin_ns);
}

/// Sending blocks, then one that receives; a single phase has only one kind. Both read the epoch
/// before the last block advances the counter.
__global__ void __launch_bounds__(send_threads, 1)
    low_latency_dispatch(const __grid_constant__ DeviceJob job,
                         const __grid_constant__ LowLatencyDispatch all, std::int32_t senders) {
  __shared__ LowLatencySender::Shared shared;
  LowLatencyFlags* const flags = all.memory.flags;
  if (static_cast<std::int32_t>(blockIdx.x) < senders) {
    const std::uint64_t epoch = device::load_relaxed(&flags->sent) + 1;
    LowLatencySender(job, all, shared, senders, epoch).run();
    count_call(&flags->blocks_done[0], static_cast<std::uint32_t>(senders), &flags->sent, epoch);
  } else {
    const std::uint64_t epoch = device::load_relaxed(&flags->received) + 1;
    receive_counts(all, epoch);
    count_call(&flags->blocks_done[1], 1, &flags->received, epoch);
  }
}

} // namespace shmemctl::moe
