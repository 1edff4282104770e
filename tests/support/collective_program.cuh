// What runs the programs of collective_calls.h: device code.
#pragma once

#include <type_traits>

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
/// Small: products of four are exact in every type, and order does not matter. Sums of bf16 and
/// fp16 begin with one from which on each second number is missing: who adds up as these numbers,
/// and not as floats, loses ones.
template <class T>
__device__ inline int source_number(int step, int pe, std::size_t i, device::ReduceOp op) {
  if (op == device::ReduceOp::sum && pe == 0 && std::is_same<T, device::Bf16>::value)
    return 256;
  if (op == device::ReduceOp::sum && pe == 0 && std::is_same<T, device::Fp16>::value)
    return 2048;
  return source_byte(step, pe, i) % 8 - 3;
}

/// The type in which results are computed: integers as themselves, all other numbers exactly.
template <class T>
using Model = typename std::conditional<std::is_integral<T>::value, T, double>::type;
template <class M>
__device__ inline M combined(device::ReduceOp op, M a, M b) {
  switch (op) {
  case device::ReduceOp::sum:
    return static_cast<M>(a + b);
  case device::ReduceOp::min:
    return b < a ? b : a;
  case device::ReduceOp::max:
    return a < b ? b : a;
  case device::ReduceOp::prod:
    if constexpr (std::is_integral<M>::value) // wraps around
      return static_cast<M>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    return static_cast<M>(a * b);
  default:
    break;
  }
  if constexpr (std::is_integral<M>::value)
    return static_cast<M>(op == device::ReduceOp::bit_and  ? a & b
                          : op == device::ReduceOp::bit_or ? a | b
                                                           : a ^ b);
  return a;
}

template <class T>
__device__ inline T number_of(Model<T> value) {
  if constexpr (std::is_same<T, device::Bf16>::value || std::is_same<T, device::Fp16>::value) {
    T number{};
    device::from_float(static_cast<float>(value), number);
    return number;
  } else {
    return static_cast<T>(value);
  }
}
template <class T>
__device__ inline bool is_number(T number, Model<T> value) {
  return number == number_of<T>(value); // -0, too
}
__device__ inline bool is_number(device::Bf16 number, double value) {
  return device::to_float(number) == device::to_float(number_of<device::Bf16>(value));
}
__device__ inline bool is_number(device::Fp16 number, double value) {
  return device::to_float(number) == device::to_float(number_of<device::Fp16>(value));
}

/// Types of numbers that reductions have, because each type is much to compile for a GPU: int32_t
/// alone; one of each kind; all.
enum class Types { one, some, all };

/// One scope of each PE, or all blocks of a launch (`grid`), make the calls and look at each
/// result; `wrong` counts what is not as it should be. What is not of `types` is int32_t.
template <class Scope, bool grid, Types types>
class Program {
public:
  __device__ Program(const DeviceJob& job, const Call* calls, int count, std::uint64_t* wrong)
      : job_(job), calls_(calls), count_(count), wrong_(wrong) {}

  __device__ void run() {
    for (int step = 0; step < count_; ++step) {
      // A scope that has given up does not go on; all threads of the scope see it together.
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
      } else if (call.kind == Call::collect) {
        collect(call, step);
      } else if (call.kind == Call::alltoalls) {
        alltoalls(call, step);
      } else if (call.kind < Call::reduce) {
        move(call, step);
      } else if constexpr (types == Types::one) {
        reduce<std::int32_t>(call, step);
      } else {
        reduce_type(call, step);
      }
    }
  }

private:
  __device__ std::size_t rank() const {
    return static_cast<std::size_t>(Scope::rank()) +
           (grid ? static_cast<std::size_t>(device::Grid::rank()) * step() : 0);
  }
  __device__ std::size_t step() const { return static_cast<std::size_t>(Scope::size()); }
  __device__ std::size_t all() const {
    return grid ? step() * static_cast<std::size_t>(device::Grid::size()) : step();
  }
  __device__ void meet(int team) {
    if constexpr (grid)
      expect(device::grid_sync(job_, team));
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
    std::byte* const source = call.kind == Call::fcollect && call.root % 3 == 0 // in place
                                  ? dest + me() * call.size
                                  : job_.heap + job_.heap_bytes / 2 + call.from;
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

  __device__ void reduce_type(const Call& call, int step) {
    switch (static_cast<Call::Type>(call.type)) {
    case Call::int64:
      return reduce<std::int64_t>(call, step);
    case Call::float32:
      return reduce<float>(call, step);
    case Call::bf16:
      return reduce<device::Bf16>(call, step);
    case Call::fp16:
      return reduce<device::Fp16>(call, step);
    case Call::float64:
      return reduce<double>(call, step);
    case Call::uint8:
      return reduce<std::uint8_t>(call, step);
    default:
      break;
    }
    if constexpr (types == Types::all) {
      switch (static_cast<Call::Type>(call.type)) {
      case Call::int8:
        return reduce<std::int8_t>(call, step);
      case Call::int16:
        return reduce<std::int16_t>(call, step);
      case Call::uint16:
        return reduce<std::uint16_t>(call, step);
      case Call::uint32:
        return reduce<std::uint32_t>(call, step);
      case Call::uint64:
        return reduce<std::uint64_t>(call, step);
      default:
        break;
      }
    }
    reduce<std::int32_t>(call, step);
  }

  /// What member `i` brings to a collect; nothing, now and then.
  __device__ static std::size_t brings(const Call& call, std::size_t i) {
    return (call.size * (i + 1) + i * 13) % (call.size + 1);
  }
  __device__ __noinline__ void collect(const Call& call, int step_number) {
    std::byte* const dest = job_.heap + call.to;
    std::byte* const source = job_.heap + job_.heap_bytes / 2 + call.from;
    const std::size_t mine = brings(call, me());
    for (std::size_t i = rank(); i < mine; i += all())
      source[i] = static_cast<std::byte>(source_byte(step_number, job_.pe, i));
    meet(call.team);
    expect(grid ? device::collect_grid(job_, call.team, dest, source, mine)
                : device::collect<Scope>(job_, call.team, dest, source, mine));
    meet(call.team);
    std::size_t begin = 0;
    for (std::size_t member = 0; member < members(); ++member) {
      const std::size_t size = brings(call, member);
      for (std::size_t i = rank(); i < size; i += all())
        expect(static_cast<std::uint8_t>(dest[begin + i]) ==
               source_byte(step_number, team_.pe(static_cast<int>(member)), i));
      begin += size;
    }
    meet(call.team);
  }

  /// 32-bit words; those between must stay as they are.
  __device__ __noinline__ void alltoalls(const Call& call, int step_number) {
    auto* const dest = reinterpret_cast<std::uint32_t*>(job_.heap + call.to / 4 * 4);
    auto* const source =
        reinterpret_cast<std::uint32_t*>(job_.heap + job_.heap_bytes / 2 + call.from / 4 * 4);
    const std::size_t count = (call.size + 3) / 4, dest_stride = 1 + call.root % 3U,
                      source_stride = 1 + call.root % 2U;
    const auto word_of = [&](int pe, std::size_t i) {
      return static_cast<std::uint32_t>(source_byte(step_number, pe, i)) * 0x01010101U;
    };
    for (std::size_t i = rank(); i < members() * count; i += all())
      source[i * source_stride] = word_of(job_.pe, i);
    for (std::size_t i = rank(); i < members() * count * dest_stride; i += all())
      dest[i] = 0x5eed;
    meet(call.team);
    const auto to_stride = static_cast<std::ptrdiff_t>(dest_stride);
    const auto from_stride = static_cast<std::ptrdiff_t>(source_stride);
    expect(
        grid ? device::alltoalls_grid(job_, call.team, dest, source, to_stride, from_stride, count)
             : device::alltoalls<Scope>(job_, call.team, dest, source, to_stride, from_stride,
                                        count));
    meet(call.team);
    for (std::size_t i = rank(); i < members() * count * dest_stride; i += all()) {
      const std::size_t at = i / dest_stride;
      expect(dest[i] == (i % dest_stride != 0 ? 0x5eed
                                              : word_of(team_.pe(static_cast<int>(at / count)),
                                                        me() * count + at % count)));
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
      source[i] =
          number_of<T>(static_cast<Model<T>>(source_number<T>(step_number, job_.pe, i, call.op)));
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
      const auto number = [&](int member) {
        return static_cast<Model<T>>(source_number<T>(step_number, team_.pe(member), at, call.op));
      };
      Model<T> expected = number(0);
      for (int member = 1; member < team_.n; ++member)
        expected = combined(call.op, expected, number(member));
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
