// High-throughput dispatch: each warp loads a row into shared memory once, and stores it from there
// into its final position on each destination rank.
#pragma once

#include "kernels/moe/bulk_copy.cuh"
#include "kernels/moe/call.cuh"
#include "kernels/moe/high_throughput.h"
#include "kernels/stream_wait.cuh"

namespace shmemctl::moe {

/// A token, spread over the lanes of a warp: lane k holds its k-th expert, each sending lane the
/// token's row index on the rank that the lane sends to, and all lanes together its scales (of up
/// to 16384 channels; write_record() reads the rest).
struct TokenOfLanes {
  static constexpr int max_scales = 4; ///< scales that one lane holds
  std::int32_t row = -1;
  std::int32_t expert = no_expert;
  float weight = 0;
  float scales[max_scales];

  __device__ void read(const DispatchArguments& all, std::int32_t token, int lane, bool sends,
                       std::int32_t rank, std::int32_t base) {
    const Shape& shape = all.shape;
    row = -1;
    if (token >= all.tokens)
      return;
    if (sends) {
      const std::int32_t slot =
          all.plan.slots[static_cast<std::int64_t>(token) * shape.n_ranks + rank];
      row = slot < 0 ? -1 : base + slot;
    }
    if (lane < shape.top_k) {
      expert = __ldg(all.experts + static_cast<std::int64_t>(token) * shape.top_k + lane);
      weight = __ldg(all.weights + static_cast<std::int64_t>(token) * shape.top_k + lane);
    }
    if (all.format == Format::fp8) {
      const std::int32_t n = shape.scales_per_row();
#pragma unroll
      for (int i = 0; i < max_scales; ++i)
        if (lane + i * 32 < n)
          scales[i] = __ldg(all.scales + static_cast<std::int64_t>(token) * n + lane + i * 32);
    }
  }

  __device__ void write_record(const DispatchArguments& all, std::uint32_t* record, int lane,
                               std::int32_t token, std::int32_t to, std::int32_t from) const {
    const MetadataLayout layout = all.record();
#pragma unroll
    for (int i = 0; i < max_scales; ++i)
      if (lane + i * 32 < layout.scale_words)
        record[lane + i * 32] = __float_as_uint(scales[i]);
    for (std::int32_t i = lane + max_scales * 32; i < layout.scale_words; i += 32)
      record[i] = __float_as_uint(
          __ldg(all.scales + static_cast<std::int64_t>(token) * layout.scale_words + i));
    if (lane < layout.top_k) {
      const std::int32_t local = all.shape.local_expert(expert, to);
      record[layout.experts() + lane] = static_cast<std::uint32_t>(local);
      record[layout.weights() + lane] = local == no_expert ? 0 : __float_as_uint(weight);
    }
    // Source rank and token, then zeros up to the end of the record.
    const std::int32_t word = layout.source() + lane;
    if (word < layout.words())
      record[word] = lane == 0   ? static_cast<std::uint32_t>(from)
                     : lane == 1 ? static_cast<std::uint32_t>(token)
                                 : 0;
  }
};

/// The pipeline of one warp over its tokens.
///
/// With enough SMs, a block sends either to the other ranks or to this rank itself
/// (blocks_for_self()): an SM that does both moves less over NVLink, because its stores wait for
/// each other (two H200s, 24 blocks: 281 instead of 319 GB/s).
template <int kept>
class Sender {
public:
  __device__ Sender(const DeviceJob& job, const DispatchArguments& all, std::byte* shared)
      : all_(all), lane_(static_cast<int>(threadIdx.x % 32)), me_(job.pe),
        stages_(all.tuning.stages), stage_bytes_(dispatch_stage_bytes(all)),
        value_bytes_(all.shape.value_bytes(all.format)) {
    const auto n_warps = static_cast<std::int32_t>(blockDim.x / 32);
    const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
    share_work(warp, n_warps);
    stage_memory_ = shared + static_cast<std::ptrdiff_t>(warp * stages_) * stage_bytes_;
    barriers_ = reinterpret_cast<device::ArrivalBarrier*>(
                    shared + static_cast<std::ptrdiff_t>(n_warps * stages_) * stage_bytes_) +
                warp * stages_;
    if (lane_ == 0) {
      for (int i = 0; i < stages_; ++i)
        barriers_[i].init();
      device::ArrivalBarrier::fence_init();
    }
    __syncwarp();
    // Each rank starts with the next higher one, so that not all send to the same rank.
    rank_ = (me_ + 1 + lane_) % all.shape.n_ranks;
    mine_ = lane_ < all.shape.n_ranks && (to_self_ == both || (rank_ == me_) == (to_self_ == self));
    if (mine_) {
      rows_ = device::pointer_to(job, all.memory.rows, rank_);
      records_ = device::pointer_to(job, all.memory.records, rank_);
    }
  }

  /// Loads read only this rank's memory, so they may begin before the other ranks have entered.
  __device__ void begin() {
    for (int i = 0; i < stages_ - kept; ++i)
      load(i);
  }
  __device__ void run() {
    const std::int32_t base = mine_ ? all_.plan.bases[rank_] : 0;
    TokenOfLanes now, next;
    now.read(all_, worker_, lane_, mine_, rank_, base);
    int stage = 0;
    std::uint32_t parity = 0;
    for (std::int32_t i = 0, token = worker_; token < all_.tokens; ++i, token += workers_) {
      next.read(all_, token + workers_, lane_, mine_, rank_, base);
      std::byte* const stage_row =
          stage_memory_ + static_cast<std::ptrdiff_t>(stage) * stage_bytes_;
      send(now, token, stage_row, barriers_[stage], parity);
      // The next stage to load was the source of the stores of `kept` tokens ago: its buffer is
      // safe to overwrite once these stores have read it.
      device::bulk_wait_read<kept>();
      __syncwarp();
      load(i + stages_ - kept);
      now = next;
      if (++stage == stages_) {
        stage = 0;
        parity ^= 1;
      }
    }
    device::bulk_wait_all();
  }
  /// Called instead of run(): waits for the loads in flight, which must not write to shared memory
  /// after a later block has got it.
  __device__ void drop() {
    for (int i = 0; i < stages_ - kept; ++i)
      if (worker_ + static_cast<std::int64_t>(i) * workers_ < all_.tokens)
        barriers_[i].wait(0);
  }

private:
  enum Target { others, self, both };

  __device__ void share_work(std::int32_t warp, std::int32_t n_warps) {
    auto block = static_cast<std::int32_t>(blockIdx.x);
    auto blocks = static_cast<std::int32_t>(gridDim.x);
    const std::int32_t for_self =
        all_.in_place ? 0 : blocks_for_self(all_.tuning, all_.shape.n_ranks);
    if (for_self > 0) {
      to_self_ = block < for_self ? self : others;
      block -= to_self_ == self ? 0 : for_self;
      blocks = to_self_ == self ? for_self : blocks - for_self;
    }
    workers_ = blocks * n_warps;
    // Adjacent tokens go through different SMs.
    worker_ = warp * blocks + block;
  }
  __device__ void load(std::int32_t i) {
    const std::int64_t token = worker_ + static_cast<std::int64_t>(i) * workers_;
    if (lane_ != 0 || token >= all_.tokens)
      return;
    const int stage = i % stages_;
    barriers_[stage].expect(static_cast<std::uint32_t>(value_bytes_));
    device::bulk_load(stage_memory_ + static_cast<std::ptrdiff_t>(stage) * stage_bytes_,
                      all_.values + token * value_bytes_, static_cast<std::uint32_t>(value_bytes_),
                      barriers_[stage]);
  }
  __device__ void send(const TokenOfLanes& now, std::int32_t token, std::byte* stage_row,
                       const device::ArrivalBarrier& barrier, std::uint32_t parity) {
    const Shape& shape = all_.shape;
    const std::int32_t record_bytes = all_.record().bytes();
    std::byte* const records = stage_row + (value_bytes_ + 127) / 128 * 128;
    for (std::int32_t i = 0; i < shape.n_ranks; ++i)
      if (__shfl_sync(0xffffffffu, now.row, i) >= 0)
        now.write_record(all_, reinterpret_cast<std::uint32_t*>(records + i * record_bytes), lane_,
                         token, (me_ + 1 + i) % shape.n_ranks, me_);
    // Orders each lane's writes to the records before the copy engine reads them.
    device::fence_shared_for_bulk();
    __syncwarp();
    barrier.wait(parity);
    if (now.row >= 0) {
      if (!(all_.in_place && rank_ == me_))
        device::bulk_store(rows_ + static_cast<std::int64_t>(now.row) * value_bytes_, stage_row,
                           static_cast<std::uint32_t>(value_bytes_));
      device::bulk_store(records_ + static_cast<std::int64_t>(now.row) * record_bytes,
                         records + lane_ * record_bytes, static_cast<std::uint32_t>(record_bytes));
    }
    device::bulk_commit();
  }

  const DispatchArguments& all_;
  int lane_;
  std::int32_t me_;
  int stages_;
  std::int32_t stage_bytes_, value_bytes_;
  std::int32_t workers_ = 1, worker_ = 0;
  Target to_self_ = both;
  bool mine_ = false; ///< whether this lane sends to `rank_`
  std::byte* stage_memory_;
  device::ArrivalBarrier* barriers_;
  std::int32_t rank_ = 0;
  std::byte *rows_ = nullptr, *records_ = nullptr; ///< on `rank_`
};

template <int kept>
__global__ void __launch_bounds__(1024, 1)
    dispatch(const __grid_constant__ DeviceJob job, const __grid_constant__ DispatchArguments all) {
  extern __shared__ __align__(128) std::byte shared[];
  // With DispatchArguments::after_notify, the part up to wait_for_stream() runs while notify still
  // does. This is safe: notify began when the stream's earlier work was complete, so this rank has
  // read what it had received before, as announce() tells the other ranks, and `values` are
  // complete. What notify writes, the plan and whether it has failed, is read only after
  // wait_for_stream(), which waits for the end of notify and makes its stores visible.
  const Call call(job, all.memory.flags, all.shape.n_ranks);
  call.announce();
  Sender<kept> sender(job, all, shared);
  sender.begin();
  on_stream::wait_for_stream();
  // If notify fails meanwhile, it stores the failure to all ranks, where announce() may overwrite
  // it. finish() then stores it once more.
  const bool planned =
      !all.after_notify || device::Block::all(!calls_have_failed(all.memory.flags));
  const bool all_arrived = planned && call.wait_for_all();
  if (all_arrived)
    sender.run();
  else
    sender.drop();
  call.finish(all_arrived);
}

} // namespace shmemctl::moe
