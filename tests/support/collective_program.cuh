// What runs the programs of collective_calls.h: device code.
#pragma once

#include "kernels/shmem_device.cuh"
#include "tests/support/collective_calls.h"

namespace shmemctl::test {

/// What PE `pe` has at place `i` of its source in step `step`.
__device__ inline std::uint8_t source_byte(int step, int pe, std::size_t i) {
  const std::uint64_t z =
      (static_cast<std::uint64_t>(step) << 40 | static_cast<std::uint64_t>(pe) << 32 | i) *
      0x9e3779b97f4a7c15u;
  return static_cast<std::uint8_t>((z ^ z >> 29) * 0xbf58476d1ce4e5b9u >> 56);
}
/// Small: sums and products of four are exact in every type, and order does not matter.
__device__ inline int source_number(int step, int pe, std::size_t i) {
  return source_byte(step, pe, i) % 8 - 3;
}

__device__ inline int combined(device::ReduceOp op, int a, int b) {
  if (op == device::ReduceOp::sum)
    return a + b;
  if (op == device::ReduceOp::min)
    return b < a ? b : a;
  if (op == device::ReduceOp::max)
    return a < b ? b : a;
  return a * b;
}

__device__ inline void set_number(std::int32_t& number, int value) {
  number = value;
}
__device__ inline void set_number(std::int64_t& number, int value) {
  number = value;
}
__device__ inline void set_number(float& number, int value) {
  number = static_cast<float>(value);
}
__device__ inline void set_number(device::Bf16& number, int value) {
  device::from_float(static_cast<float>(value), number);
}
__device__ inline void set_number(device::Fp16& number, int value) {
  device::from_float(static_cast<float>(value), number);
}
template <class T>
__device__ inline bool is_number(T number, int value) {
  return number == static_cast<T>(value); // -0, too
}
__device__ inline bool is_number(device::Bf16 number, int value) {
  return device::to_float(number) == static_cast<float>(value);
}
__device__ inline bool is_number(device::Fp16 number, int value) {
  return device::to_float(number) == static_cast<float>(value);
}

/// One scope of each PE, or all blocks of a launch (`grid`), make the calls and look at each
/// result; `wrong` counts what is not as it should be. `all_types` false: whole numbers of 4 bytes
/// only.
template <class Scope, bool grid, bool all_types>
class Program {
public:
  __device__ Program(const DeviceJob& job, const Call* calls, int count, std::uint64_t* wrong)
      : job_(job), calls_(calls), count_(count), wrong_(wrong) {}

  __device__ void run() {
    for (int step = 0; step < count_; ++step) {
      // Who has given up does not go on; all threads of the scope see it together.
      if (!Scope::all(device::load_relaxed(&job_.report->state) == WaitReport::none))
        return;
      const Call call = calls_[step];
      team_ = device::team_view(job_, call.team);
      if (team_.me < 0)
        continue;
      if (call.kind == Call::sync) {
        if constexpr (grid)
          expect(device::grid_barrier(job_, call.team));
        else
          expect(device::barrier<Scope>(job_, call.team));
      } else if (call.kind < Call::reduce) {
        move(call, step);
      } else if (!all_types || call.type == 0) {
        reduce<std::int32_t>(call, step);
      } else if constexpr (all_types) {
        if (call.type == 1)
          reduce<std::int64_t>(call, step);
        else if (call.type == 2)
          reduce<float>(call, step);
        else if (call.type == 3)
          reduce<device::Bf16>(call, step);
        else
          reduce<device::Fp16>(call, step);
      }
    }
  }

private:
  __device__ std::size_t rank() const {
    return static_cast<std::size_t>(Scope::rank()) +
           (grid ? static_cast<std::size_t>(device_block()) * step() : 0);
  }
  __device__ std::size_t step() const { return static_cast<std::size_t>(Scope::size()); }
  __device__ std::size_t all() const { return grid ? step() * device_blocks() : step(); }
  static __device__ unsigned device_block() {
    using namespace device; // the host's stand-ins are there
    return blockIdx.x;
  }
  static __device__ unsigned device_blocks() {
    using namespace device;
    return gridDim.x;
  }
  __device__ void meet(int team) {
    if constexpr (grid)
      expect(device::grid_meet(job_, team));
    else
      Scope::sync();
  }
  __device__ void expect(bool right) {
    if (!right)
      device::atomic_word_add(wrong_, std::uint64_t{1});
  }
  __device__ std::size_t members() const { return static_cast<std::size_t>(team_.n); }
  __device__ std::size_t me() const { return static_cast<std::size_t>(team_.me); }
  __device__ static bool sends_nothing(std::size_t from, std::size_t to) {
    return (from + to) % 3 == 0;
  }

  __device__ __noinline__ void move(const Call& call, int step_number) {
    std::byte* const dest = job_.heap + call.to;
    std::byte* const source = job_.heap + job_.heap_bytes / 2 + call.from;
    const bool to_each = call.kind == Call::alltoall || call.kind == Call::alltoallv;
    for (std::size_t i = rank(); i < call.size * (to_each ? members() : 1); i += all())
      source[i] = static_cast<std::byte>(source_byte(step_number, job_.pe, i));
    meet(call.team);
    const int root = call.root % team_.n;
    std::uint64_t sizes[8], froms[8], tos[8];
    for (std::size_t j = 0; j < members(); ++j) {
      sizes[j] = sends_nothing(me(), j) ? 0 : call.size;
      froms[j] = j * call.size;
      tos[j] = me() * call.size;
    }
    bool ok = false;
    if (call.kind == Call::broadcast)
      ok = grid ? device::broadcast_grid(job_, call.team, dest, source, call.size, root)
                : device::broadcast<Scope>(job_, call.team, dest, source, call.size, root);
    else if (call.kind == Call::fcollect)
      ok = grid ? device::fcollect_grid(job_, call.team, dest, source, call.size)
                : device::fcollect<Scope>(job_, call.team, dest, source, call.size);
    else if (call.kind == Call::alltoall)
      ok = grid ? device::alltoall_grid(job_, call.team, dest, source, call.size)
                : device::alltoall<Scope>(job_, call.team, dest, source, call.size);
    else
      ok = grid ? device::alltoallv_grid(job_, call.team, dest, source, sizes, froms, tos)
                : device::alltoallv<Scope>(job_, call.team, dest, source, sizes, froms, tos);
    expect(ok);
    meet(call.team);
    const std::size_t from = to_each ? me() * call.size : 0;
    const std::size_t parts = call.kind == Call::broadcast ? 1 : members();
    for (std::size_t i = rank(); i < parts * call.size; i += all()) {
      const std::size_t member = i / call.size, at = i % call.size;
      const int pe = team_.pe(call.kind == Call::broadcast ? root : static_cast<int>(member));
      if (call.kind != Call::alltoallv || !sends_nothing(member, me()))
        expect(static_cast<std::uint8_t>(dest[i]) == source_byte(step_number, pe, from + at));
    }
    meet(call.team);
  }

  template <class T>
  __device__ __noinline__ void reduce(const Call& call, int step_number) {
    auto* const dest = reinterpret_cast<T*>(job_.heap + call.to / 16 * sizeof(T));
    auto* const source =
        reinterpret_cast<T*>(job_.heap + job_.heap_bytes / 2 + call.from / 16 * sizeof(T));
    const bool scatter = call.kind == Call::reducescatter;
    for (std::size_t i = rank(); i < call.size * (scatter ? members() : 1); i += all())
      set_number(source[i], source_number(step_number, job_.pe, i));
    meet(call.team);
    T* const to = call.root == 0 && !scatter ? source : dest; // in place, too
    bool ok = false;
    if (scatter)
      ok = grid ? device::reducescatter_grid(job_, call.team, to, source, call.size, call.op)
                : device::reducescatter<Scope>(job_, call.team, to, source, call.size, call.op);
    else
      ok = grid ? device::reduce_grid(job_, call.team, to, source, call.size, call.op)
                : device::reduce<Scope>(job_, call.team, to, source, call.size, call.op);
    expect(ok);
    meet(call.team);
    for (std::size_t i = rank(); i < call.size; i += all()) {
      const std::size_t at = scatter ? me() * call.size + i : i;
      int expected = source_number(step_number, team_.pe(0), at);
      for (int member = 1; member < team_.n; ++member)
        expected = combined(call.op, expected, source_number(step_number, team_.pe(member), at));
      expect(is_number(to[i], expected));
    }
    meet(call.team);
  }

  const DeviceJob& job_;
  const Call* calls_;
  int count_;
  std::uint64_t* wrong_;
  device::TeamView team_{};
};

} // namespace shmemctl::test
