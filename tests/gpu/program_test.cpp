// Conformance of the device API on GPUs: random programs against sequential models, collectives of
// all sizes and teams, waits.
#include <gtest/gtest.h>

#include "tests/gpu/device_world.h"
#include "tests/gpu/program_kernels.h"
#include "tests/gpu/share.h"

namespace shmemctl::test {
namespace {

/// PEs that may share GPUs: then kernels that wait for each other take turns by time slices.
void run(int n_pes, std::size_t heap_bytes, const std::function<void(GpuPe&)>& body) {
  if (count_gpus() == 0)
    GTEST_SKIP() << "no GPU";
  EXPECT_EQ(run_gpu_pes(n_pes, heap_bytes, body), "");
}
bool has_own_gpu(int n_pes) {
  return count_gpus() >= n_pes;
}

/// At least a few, where only a share of the rounds is wanted: every program and call is another
/// one.
int few(int count) {
  return std::max(share_of(count), std::min(count, 4));
}

std::string name_of(Who who) {
  return who == Who::thread ? "thread" : who == Who::warp ? "warp" : "block";
}

/// Compares all of the heap.
void run_programs(GpuPe& me, Who who, int threads, unsigned seed, int phases, int steps) {
  const RmaPrograms programs(me.job.n_pes, seed, phases, steps, 20000);
  const std::vector<RmaStep>& mine = programs.steps(me.job.pe);
  DeviceArray<RmaStep> on_device(mine);
  DeviceArray<std::uint64_t> gave_up(1);
  me.store(0, programs.before(me.job.pe));
  me.barrier();
  launch_rma_program(me.job, who, threads, on_device.data(), static_cast<int>(mine.size()),
                     gave_up.data());
  me.synchronize();
  me.barrier();
  const std::vector<std::uint8_t> found = me.load(0, RmaPrograms::heap_bytes);
  const std::vector<std::uint8_t>& expected = programs.after(me.job.pe);
  std::size_t at = 0;
  while (at < found.size() && found[at] == expected[at])
    ++at;
  require(at == found.size(), "program " + std::to_string(seed) + " of a " + name_of(who) +
                                  ": byte " + std::to_string(at) + " of PE " +
                                  std::to_string(me.job.pe));
  me.barrier();
}

TEST(Conformance, Programs) {
  const int steps = has_own_gpu(2) ? 100 : 30, phases = few(has_own_gpu(2) ? 30 : 4);
  run(2, RmaPrograms::heap_bytes, [&](GpuPe& me) {
    for (unsigned seed = 0; seed < 3; ++seed) {
      run_programs(me, Who::thread, 1, 100 + seed, phases, steps);
      run_programs(me, Who::warp, 32, 200 + seed, phases, steps);
      run_programs(me, Who::block, 256, 300 + seed, phases, steps);
    }
  });
}

TEST(Conformance, ProgramsOfThreeAndFour) {
  for (const int n_pes : {3, 4})
    run(n_pes, RmaPrograms::heap_bytes, [&](GpuPe& me) {
      const int phases = few(has_own_gpu(n_pes) ? 30 : 5);
      run_programs(me, Who::warp, 32, 400, phases, 50);
      run_programs(me, Who::block, 192, 500, phases, 50);
    });
}

TEST(Conformance, Waits) {
  run(2, std::size_t{1} << 20, [](GpuPe& me) {
    for (const auto& [who, threads] :
         {std::pair{Who::thread, 1}, std::pair{Who::warp, 32}, std::pair{Who::block, 96}}) {
      DeviceArray<std::uint64_t> wrong(1);
      me.store(0, std::vector<std::uint8_t>(64, 0));
      me.barrier();
      launch_waits(me.job, who, threads, wrong.data());
      me.synchronize();
      require(wrong.values()[0] == 0, "waits of a " + name_of(who));
      me.barrier();
    }
  });
}

constexpr std::size_t collective_heap_bytes = std::size_t{64} << 20;

void require_none_wrong(const DeviceArray<std::uint64_t>& wrong, const std::string& what) {
  require(wrong.values()[0] == 0, std::to_string(wrong.values()[0]) + " wrong: " + what);
}

void run_collectives(GpuPe& me, Who who, int threads, unsigned seed, int count, std::size_t most) {
  DeviceArray<Call> calls(random_calls(seed, count, most));
  DeviceArray<std::uint64_t> wrong(1);
  me.barrier();
  launch_collectives(me.job, who, threads, calls.data(), count, wrong.data());
  me.synchronize();
  require_none_wrong(wrong, "collectives of a " + name_of(who));
  me.barrier();
}

void run_collectives_of_grid(GpuPe& me, Shape shape, unsigned seed, int count, std::size_t most) {
  DeviceArray<Call> calls(random_calls(seed, count, most));
  DeviceArray<std::uint64_t> wrong(1);
  me.barrier();
  launch_collectives_of_grid(me.job, shape, calls.data(), count, wrong.data());
  me.synchronize();
  require_none_wrong(wrong, "collectives of " + std::to_string(shape.blocks) + " blocks");
  me.barrier();
}

TEST(Conformance, Collectives) {
  const int share = has_own_gpu(2) ? 1 : 10;
  run(2, collective_heap_bytes, [&](GpuPe& me) {
    run_collectives(me, Who::thread, 1, 1, few(300 / share), 10000);
    run_collectives(me, Who::warp, 32, 2, few(300 / share), 100000);
    run_collectives(me, Who::block, 512, 3, few(300 / share), std::size_t{1} << 20);
  });
}
TEST(Conformance, CollectivesOfGrids) {
  const int share = has_own_gpu(2) ? 1 : 10;
  run(2, collective_heap_bytes, [&](GpuPe& me) {
    run_collectives_of_grid(me, {1, 256}, 4, few(100 / share), std::size_t{1} << 20);
    run_collectives_of_grid(me, {7, 128}, 5, few(200 / share), std::size_t{4} << 20);
    run_collectives_of_grid(me, {64, 512}, 6, few(300 / share), std::size_t{4} << 20);
  });
}
TEST(Conformance, CollectivesOfThreeAndFour) {
  for (const int n_pes : {3, 4})
    run(n_pes, collective_heap_bytes, [&](GpuPe& me) {
      const int count = few(has_own_gpu(n_pes) ? 200 : 25);
      run_collectives(me, Who::block, 256, 7, count, 100000);
      run_collectives_of_grid(me, {8, 256}, 8, count, std::size_t{1} << 20);
    });
}

} // namespace
} // namespace shmemctl::test
