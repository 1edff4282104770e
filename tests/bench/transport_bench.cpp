// Figures of one transport between two processes of this machine, beside which ucx_perftest and
// ib_write_bw can be run: `bench_transport libfabric LIBFABRIC_PROVIDER=tcp [only=put-pingpong]`.
// Prints one line for each case: name, bytes, microseconds for each operation, MB/s.
//
//   put-pingpong   half a round trip of a put that the other one waits for (ucp_put_lat)
//   put-latency    a put and quiet
//   get-latency    a get
//   fetch-add      an atomic operation with its answer
//   put-bandwidth  puts of which `window` are in flight (ucp_put_bw)
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sched.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "src/base/text.h"
#include "tests/support/transport_world.h"
#include "transports/registry.h"

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

constexpr int rounds = 7;
constexpr std::size_t window = 32, largest = std::size_t{1} << 20;
constexpr std::size_t flag_offset = 64, data_offset = 4096;

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

RemoteAddress heap_of(int pe, std::size_t offset_bytes) {
  return {pe, region::heap, offset_bytes};
}

void wait_flag(TransportPe& me, std::uint64_t value) {
  std::atomic_ref<std::uint64_t> flag(*reinterpret_cast<std::uint64_t*>(me.heap + flag_offset));
  for (int turn = 1; flag.load(std::memory_order_acquire) != value; ++turn) {
    me.transport->progress();
    if (turn % 1024 == 0)
      me.health->check();
  }
}

/// The cases that were asked for: those whose name begins like this.
std::string& only() {
  static std::string text;
  return text;
}

/// Calls `body(times)` to warm up, then several times; PE 0 prints the median.
template <class Body>
void measure(TransportPe& me, const char* name, std::size_t size_bytes, std::size_t times,
             Body&& body) {
  if (std::string(name).rfind(only(), 0) != 0)
    return;
  std::vector<double> each_us;
  body(times / 4 + 1);
  for (int round = 0; round < rounds; ++round) {
    me.barrier();
    const auto begin = Clock::now();
    body(times);
    each_us.push_back(microseconds_since(begin) / static_cast<double>(times));
  }
  me.barrier();
  std::sort(each_us.begin(), each_us.end());
  const double median_us = each_us[rounds / 2];
  if (me.pe == 0)
    std::cout << name << " " << size_bytes << " " << median_us << " "
              << static_cast<double>(size_bytes) / median_us << " (best " << each_us.front() << ")"
              << std::endl;
}

void measure_pingpong(TransportPe& me, std::uint64_t& value) {
  measure(me, "put-pingpong", 8, 20000, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      ++value;
      if (me.pe == 1)
        wait_flag(me, value);
      me.transport->put(0, heap_of(1 - me.pe, flag_offset), &value, sizeof value, true);
      if (me.pe == 0)
        wait_flag(me, value);
    }
    me.transport->quiet(0);
  });
}

/// The target only waits, in the transport's progress, as PEs in a barrier do.
void measure_one_sided(TransportPe& me, std::uint64_t& value) {
  const auto active = [&](const char* name, std::size_t size_bytes, std::size_t times,
                          auto&& operation) {
    measure(me, name, size_bytes, times, [&](std::size_t count) {
      ++value;
      if (me.pe == 1)
        return wait_flag(me, value);
      for (std::size_t i = 0; i < count; ++i)
        operation(i);
      me.transport->quiet(0);
      me.transport->put(0, heap_of(1, flag_offset), &value, sizeof value, true);
      me.transport->quiet(0);
    });
  };
  Transport& transport = *me.transport;
  std::byte* const source = me.heap + data_offset;
  for (const std::size_t size_bytes : {std::size_t{8}, std::size_t{4096}, std::size_t{65536}})
    active("put-latency", size_bytes, size_bytes > 4096 ? 4000 : 10000, [&](std::size_t) {
      transport.put(0, heap_of(1, data_offset), source, size_bytes, false);
      transport.quiet(0);
    });
  for (const std::size_t size_bytes : {std::size_t{8}, std::size_t{65536}})
    active("get-latency", size_bytes, 5000, [&](std::size_t) {
      transport.get(0, source, heap_of(1, data_offset), size_bytes, true);
    });
  active("fetch-add", 8, 10000, [&](std::size_t) {
    transport.atomic(0, heap_of(1, 512), {AtomicOp::add, 8, 1});
  });
  for (const std::size_t size_bytes :
       {std::size_t{8}, std::size_t{4096}, std::size_t{65536}, largest})
    for (const bool blocking : {false, true})
      active(blocking ? "put-bandwidth-blocking" : "put-bandwidth", size_bytes,
             std::max<std::size_t>(
                 (std::size_t{512} << 20) / std::max<std::size_t>(size_bytes, 8192), window),
             [&](std::size_t i) {
               transport.put(0, heap_of(1, data_offset + i % 8 * size_bytes), source, size_bytes,
                             blocking);
               if (i % window == window - 1)
                 transport.quiet(0);
             });
}

void run_cases(TransportPe& me) {
  std::uint64_t value = 0;
  measure_pingpong(me, value);
  measure_one_sided(me, value);
}

void pin_to(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

int run_pe(BootstrapArea& area, int pe, const std::string& name,
           const TransportWorldOptions& wanted) {
  try {
    if (std::getenv("BENCH_PIN"))
      pin_to(pe);
    ThreadBootstrap bootstrap(area, pe);
    JobHealth health;
    const std::string reason =
        run_transport_pe([&](const TransportSetup& setup) { return make_transport(name, setup); },
                         run_cases, wanted, bootstrap, health);
    if (reason.empty())
      return 0;
    if (pe == 0)
      std::cerr << reason << std::endl;
  } catch (const Error& error) {
    std::cerr << error.message() << "\n" << error.fix() << std::endl;
  }
  return 3;
}

} // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::cerr << "use: bench_transport NAME [only=CASE] [OPTION=VALUE...]" << std::endl;
    return 2;
  }
  TransportWorldOptions wanted;
  wanted.heap_bytes = std::size_t{16} << 20;
  for (int i = 2; i < count; ++i) {
    const std::vector<std::string> pair = split(words[i], '=');
    (pair[0] == "only" ? only() : wanted.options[pair[0]]) = pair.size() > 1 ? pair[1] : "";
  }
  BootstrapArea area(2);
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(run_pe(area, 1, words[1], wanted));
  const int mine = run_pe(area, 0, words[1], wanted);
  int status = 0;
  ::waitpid(child, &status, 0);
  return mine != 0 ? mine : WEXITSTATUS(status);
}
