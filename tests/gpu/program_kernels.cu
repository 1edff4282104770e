#include "tests/gpu/program_kernels.h"

#include "tests/gpu/launch.cuh"
#include "tests/support/rma_program.cuh"

namespace shmemctl::test {

namespace {

template <class Scope>
__global__ void __launch_bounds__(512)
    rma_program(const __grid_constant__ DeviceJob job, const RmaStep* steps, int count,
                std::uint64_t* gave_up) {
  if (is_outside<Scope>())
    return;
  if (!run_program<Scope>(job, steps, count))
    *gave_up = 1;
}

template <class Scope>
__global__ void waits(const __grid_constant__ DeviceJob job, std::uint64_t* wrong) {
  if (is_outside<Scope>())
    return;
  auto* const words = reinterpret_cast<std::int32_t*>(job.heap);
  auto* const indices = reinterpret_cast<std::size_t*>(job.heap + 4096);
  auto* const status = reinterpret_cast<int*>(job.heap + 8192); // 0, 1, 0, 0
  auto* const wanted = reinterpret_cast<std::int32_t*>(job.heap + 8192 + 64);
  const auto expect = [&](bool right) {
    if (!right)
      device::atomic_word_add(wrong, std::uint64_t{1});
  };
  if (Scope::rank() == 0) {
    for (int i = 0; i < 4; ++i)
      status[i] = i == 1;
    wanted[0] = -6;
    wanted[1] = 0;
    wanted[2] = -5;
    wanted[3] = -7;
  }
  Scope::sync();
  using device::Compare;
  if (job.pe == 0) {
    if (Scope::rank() == 0)
      device::put_value(job, words + 2, -5, 1);
    expect(device::barrier_all<Scope>(job));
    if (Scope::rank() == 0) {
      device::put_value(job, words + 0, -6, 1);
      device::put_value(job, words + 3, -7, 1);
    }
  } else {
    std::ptrdiff_t index = 0;
    std::size_t found = 0;
    expect(device::wait_until_any<Scope>(job, words, 4, status, Compare::less, 0, index));
    expect(index == 2);
    expect(device::test_any<Scope>(words, 2, status, Compare::equal, 1) == -1);
    expect(!device::test_all<Scope>(words, 4, status, Compare::not_equal, 0));
    expect(device::test(words + 2, Compare::less_equal, -5));
    expect(
        device::wait_until_some<Scope>(job, words, 4, status, Compare::equal, -5, indices, found));
    expect(found == 1 && indices[0] == 2);
    expect(device::barrier_all<Scope>(job));
    expect(device::wait_until_all<Scope>(job, words, 4, status, Compare::less, 0));
    expect(device::wait_until_all_vector<Scope>(job, words, 4, nullptr, Compare::equal,
                                                static_cast<const std::int32_t*>(wanted)));
    expect(device::test_some<Scope>(words, 4, status, Compare::less, -5, indices) == 2);
    const auto* const values = static_cast<const std::int32_t*>(wanted);
    expect(device::wait_until_any_vector<Scope>(job, words, 4, status, Compare::equal, values,
                                                index) &&
           index == 0);
    expect(device::wait_until_some_vector<Scope>(job, words, 4, status, Compare::equal, values,
                                                 indices, found) &&
           found == 3);
    expect(device::test_all_vector<Scope>(words, 4, nullptr, Compare::equal, values));
    expect(device::test_any_vector<Scope>(words, 4, status, Compare::greater, values) == -1);
    expect(device::test_some_vector<Scope>(words, 4, status, Compare::less, values, indices) == 0);
  }
}

} // namespace

void launch_rma_program(const DeviceJob& job, Who who, int threads, const RmaStep* steps, int count,
                        std::uint64_t* gave_up) {
  for_scope(who, [&](auto scope) {
    rma_program<decltype(scope)><<<1, threads>>>(job, steps, count, gave_up);
  });
}

void launch_waits(const DeviceJob& job, Who who, int threads, std::uint64_t* wrong) {
  for_scope(who, [&](auto scope) { waits<decltype(scope)><<<1, threads>>>(job, wrong); });
}

} // namespace shmemctl::test
