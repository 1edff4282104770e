// WQEs, completions and the send queue compile for GPUs as they are. Compiled, not run.
#include "kernels/device/gpu_memory.cuh"
#include "src/abi/qp_table.h"
#include "src/abi/send_queue.h"
#include "src/abi/wqe.h"

namespace shmemctl::mlx5 {

namespace {

using GpuQueue = SendQueue<DeviceShape, device::GpuMemory>;

__device__ std::uint64_t post(const GpuQueue& queue, std::uint32_t wqebbs, std::uint64_t& known) {
  const std::uint64_t start = queue.reserve(wqebbs);
  while (!queue.has_room(start + wqebbs, known) && !queue.poll_for_room(start + wqebbs, known)) {
  }
  return start;
}

__device__ void publish(const GpuQueue& queue, std::uint64_t start, std::uint32_t wqebbs) {
  queue.written();
  PublishResult turn = PublishResult::not_my_turn;
  while (turn == PublishResult::not_my_turn)
    turn = queue.try_publish(start, wqebbs, {start + 1, start + wqebbs}, DoorbellMode::now);
  while (turn == PublishResult::ring && !queue.try_ring(start + wqebbs)) {
  }
}

__device__ WqeHead head_of(const GpuQueue& queue, std::uint64_t start) {
  return {start, queue.view().qpn, flag_completion};
}

} // namespace

/// Every operation of the layer, by every thread.
__global__ void every_operation(QpView view, RaddrSegment remote, DataSegment local,
                                std::uint64_t value) {
  const GpuQueue queue(view);
  std::uint64_t known = 0;
  std::uint64_t start = post(queue, 1, known);
  WqeSlot slot_1(queue, start);
  build_value_write(slot_1, head_of(queue, start), remote, value, 8);
  publish(queue, start, 1);
  start = post(queue, 1, known);
  WqeSlot slot_2(queue, start);
  build_read(slot_2, head_of(queue, start), remote, local);
  publish(queue, start, 1);
  const AtomicFields fields = atomic_and(8, value);
  start = post(queue, wqebbs_for(atomic_ds_count(fields)), known);
  WqeSlot slot_3(queue, start);
  build_atomic(slot_3, head_of(queue, start), remote, fields, local);
  publish(queue, start, wqebbs_for(atomic_ds_count(fields)));
  start = post(queue, 2, known);
  unsigned char bytes[40] = {1, 2, 3};
  WqeSlot slot_4(queue, start);
  build_inline_write(slot_4, head_of(queue, start), remote, bytes, sizeof bytes);
  publish(queue, start, 2);
  start = post(queue, 1, known);
  WqeSlot slot_5(queue, start);
  build_nop(slot_5, head_of(queue, start));
  publish(queue, start, 1);
  while (queue.completed() < start + 1 && queue.failure() == 0)
    queue.poll();
  if (!queue.target().needs_nop)
    while (!queue.try_flush()) {
    }
}

/// A put by PE, region and offset, as a kernel makes it of a table that was copied to its GPU.
__global__ void put_by_table(const mlx5::QpTable* table, std::uint32_t pe,
                             std::uint64_t offset_bytes, std::uint64_t source,
                             std::uint32_t size_bytes) {
  if (table->paths_to(pe) == 0)
    return;
  const mlx5::TableQp& entry = table->queue(pe, 0, blockIdx.x % table->n_qp_sets);
  const mlx5::RemoteSegment* remote = table->find_remote(pe, 1, offset_bytes);
  const mlx5::LocalSegment* local = table->find_local(source);
  if (!remote || !local)
    return;
  const GpuQueue queue(entry.view);
  std::uint64_t known = 0;
  const std::uint64_t start = post(queue, 1, known);
  WqeSlot slot(queue, start);
  build_write(
      slot, head_of(queue, start),
      {remote->address + (offset_bytes - remote->offset_bytes), remote->rkeys[entry.peer_port]},
      {source, local->lkeys[entry.port], size_bytes});
  publish(queue, start, 1);
  while (queue.completed() < start + 1 && queue.failure() == 0)
    queue.poll();
}

} // namespace shmemctl::mlx5
