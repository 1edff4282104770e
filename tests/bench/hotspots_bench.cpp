// What `hotspots` costs: 16 ports with 60 counters each. `core_percent` is the CPU time, user and
// system, of a minute of sampling at 10 Hz as a share of that minute. Files of a folder are in
// for sysfs, whose reads cost about as much.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "src/instruments/hotspots/watch.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/instruments/hotspots/counter_tree.h"

namespace {

using namespace shmemctl;

constexpr int n_ports = 16, n_counters = 60;

void write_counters(const TemporaryFolder& root) {
  for (int port = 0; port < n_ports; ++port) {
    const std::string folder =
        "sys/class/infiniband/mlx5_" + std::to_string(port) + "/ports/1/counters/";
    for (const char* name :
         {"port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"})
      root.write(folder + name, "123456789012\n");
    for (int i = 4; i < n_counters; ++i)
      root.write(folder + "counter_" + std::to_string(i), std::to_string(i) + "\n");
  }
}

double cpu_s() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void one_sample(benchmark::State& state, SampleDepth depth) {
  const TemporaryFolder root;
  write_counters(root);
  const ManyFiles many;
  HotspotWatch watch{Sysroot(root.path()), hca_node(n_ports)};
  watch.sample(SampleDepth::all);
  for (auto _ : state)
    watch.sample(depth);
  state.counters["counters"] = static_cast<double>(watch.counters());
}
BENCHMARK_CAPTURE(one_sample, all, SampleDepth::all);
BENCHMARK_CAPTURE(one_sample, load, SampleDepth::load);

void ten_times_a_second(benchmark::State& state) {
  const TemporaryFolder root;
  write_counters(root);
  const ManyFiles many;
  HotspotWatch watch{Sysroot(root.path()), hca_node(n_ports)};
  watch.sample(SampleDepth::all);
  constexpr double interval_s = 0.1;
  const auto duration_s = static_cast<double>(state.range(0));
  for (auto _ : state) {
    const double before_s = cpu_s();
    sample_for(watch, interval_s, duration_s);
    state.counters["core_percent"] = (cpu_s() - before_s) / duration_s * 100;
  }
}
BENCHMARK(ten_times_a_second)->Arg(60)->Iterations(1)->Unit(benchmark::kSecond);

} // namespace

BENCHMARK_MAIN();
