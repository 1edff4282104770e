// A file of its own, because it takes long to compile.
#include "tests/gpu/launch.cuh"
#include "tests/gpu/program_kernels.h"
#include "tests/support/collective_program.cuh"

namespace shmemctl::test {

namespace {

/// Several types of numbers for grids only: a type more for each scope is much to compile.
template <class Scope, bool grid>
__global__ void __launch_bounds__(512)
    collectives(const __grid_constant__ DeviceJob job, const Call* calls, int count,
                std::uint64_t* wrong) {
  if (is_outside<Scope>())
    return;
  Program<Scope, grid, grid ? Types::some : Types::one>(job, calls, count, wrong).run();
}

} // namespace

void launch_collectives(const DeviceJob& job, Who who, int threads, const Call* calls, int count,
                        std::uint64_t* wrong) {
  for_scope(who, [&](auto scope) {
    collectives<decltype(scope), false><<<1, threads>>>(job, calls, count, wrong);
  });
}

void launch_collectives_of_grid(const DeviceJob& job, Shape shape, const Call* calls, int count,
                                std::uint64_t* wrong) {
  for_scope(Who::block, [&](auto) {
    collectives<device::Block, true><<<shape.blocks, shape.threads>>>(job, calls, count, wrong);
  });
}

} // namespace shmemctl::test
