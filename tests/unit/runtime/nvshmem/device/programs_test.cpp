// Programs by NVSHMEM's names on threads of the host, against the sequential model.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/host_kernels.h"
#include "tests/support/nvshmem_on_host.h"
#include "tests/support/nvshmem_program.cuh"

namespace shmemctl::test {
namespace {

using device::Block;
using device::Thread;

/// @param nodes by PE; none: all on one
template <class Scope>
void run_rma_programs(int n_pes, int threads, unsigned seed, bool checked,
                      const std::vector<int>& nodes = {}) {
  const RmaPrograms programs(n_pes, seed, 4, 50, 4000, nodes);
  HostKernels kernels(n_pes, RmaPrograms::heap_bytes);
  if (!nodes.empty())
    kernels.put_on_nodes(nodes);
  for (int pe = 0; pe < n_pes; ++pe) {
    if (checked)
      kernels.check_calls(pe);
    std::memcpy(kernels.job(pe).heap, programs.before(pe).data(), RmaPrograms::heap_bytes);
  }
  kernels.run({1, threads}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    const std::vector<RmaStep>& steps = programs.steps(job.pe);
    run_program_by_names<Scope>(job.heap, steps.data(), static_cast<int>(steps.size()));
  });
  for (int pe = 0; pe < n_pes; ++pe) {
    EXPECT_EQ(kernels.report(pe).state, WaitReport::none) << "PE " << pe;
    EXPECT_EQ(std::memcmp(kernels.job(pe).heap, programs.after(pe).data(), RmaPrograms::heap_bytes),
              0)
        << "PE " << pe << " of " << n_pes;
  }
}
TEST(NvshmemNames, ProgramsOfThreads) {
  for (const int n_pes : {1, 2, 3, 4})
    run_rma_programs<Thread>(n_pes, 1, 120u + static_cast<unsigned>(n_pes), n_pes % 2 == 0);
}
TEST(NvshmemNames, ProgramsOfBlocks) {
  run_rma_programs<Block>(2, 3, 130, false);
  run_rma_programs<Block>(3, 2, 131, true);
}
TEST(NvshmemNames, ProgramsOverANetwork) {
  run_rma_programs<Thread>(2, 1, 140, true, {0, 1});
  run_rma_programs<Thread>(4, 1, 142, false, {0, 0, 1, 1});
  run_rma_programs<Block>(2, 3, 144, false, {0, 1});
}

/// @param nodes by PE; none: all on one
template <class Scope>
std::uint64_t wrong_collectives(int n_pes, int threads, unsigned seed, std::size_t most,
                                bool checked, const std::vector<int>& nodes = {}) {
  HostKernels kernels(n_pes, std::size_t{4} << 20);
  if (!nodes.empty())
    kernels.put_on_nodes(nodes);
  for (int pe = 0; pe < n_pes; ++pe)
    if (checked)
      kernels.check_calls(pe);
  const std::vector<Call> calls = random_calls(seed, 40, most);
  std::uint64_t wrong = 0;
  kernels.run({1, threads}, [&](const DeviceJob& job) {
    nvshmem::job_of_thread = &job;
    CollectivesByNames<Scope>(job.heap, job.heap_bytes, calls.data(),
                              static_cast<int>(calls.size()), &wrong)
        .run();
  });
  for (int pe = 0; pe < n_pes; ++pe)
    wrong += kernels.report(pe).state;
  return wrong;
}
TEST(NvshmemNames, CollectivesOfThreads) {
  for (const int n_pes : {1, 2, 3, 4})
    EXPECT_EQ((wrong_collectives<Thread>(n_pes, 1, 107, 40000, n_pes % 2 == 0)), 0u) << n_pes;
}
TEST(NvshmemNames, CollectivesOfBlocks) {
  EXPECT_EQ((wrong_collectives<Block>(2, 3, 108, 30000, false)), 0u);
  EXPECT_EQ((wrong_collectives<Block>(4, 2, 109, 10000, true)), 0u);
}
TEST(NvshmemNames, CollectivesOverANetwork) {
  EXPECT_EQ((wrong_collectives<Thread>(2, 1, 112, 40000, true, {0, 1})), 0u);
  EXPECT_EQ((wrong_collectives<Block>(3, 2, 115, 30000, false, {0, 1, 1})), 0u);
}

} // namespace
} // namespace shmemctl::test
