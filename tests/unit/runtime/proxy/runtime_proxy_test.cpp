// The proxy of a runtime: two processes over shared memory.
#include <gtest/gtest.h>
#include <thread>

#include "src/runtime/proxy/proxy.h"
#include "tests/support/fork_job.h"

namespace shmemctl {
namespace {

using test::ForkJob;
using test::PeResult;
using test::run_fork_job;

void require(bool condition, const std::string& what) {
  if (!condition)
    throw Error(ExitCode::finding, what, "compare", "it is not true", "-");
}

/// Threads of each PE put into the other PE, signal it, and count; all through the proxies.
std::string communicate(Runtime& runtime) {
  constexpr std::size_t n_threads = 3, count = 500;
  auto* data = static_cast<std::uint64_t*>(runtime.allocate(n_threads * count * 8));
  auto* signals = static_cast<std::uint64_t*>(runtime.allocate(n_threads * 8));
  auto* counter = static_cast<std::uint64_t*>(runtime.allocate(8));
  std::fill_n(signals, n_threads, 0);
  *counter = 0;
  runtime.teams().sync(team_world);
  const int peer = 1 - runtime.pe();
  Rma& rma = runtime.rma();
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < n_threads; ++thread)
    threads.emplace_back([&, thread] {
      ProxyProducer producer(runtime.proxy().channel(), proxy_context);
      std::uint64_t* mine = data + thread * count;
      for (std::size_t i = 0; i < count; ++i)
        producer.put_value(rma.locate(mine + i, peer), thread * count + i, 8);
      producer.post_atomic(rma.locate(counter, 0), {AtomicOp::add, 8, 1, 0});
      producer.fence(peer);
      producer.put_signal(rma.locate(mine, peer), nullptr, 0, rma.locate(signals + thread, peer), 1,
                          SignalOp::set);
      producer.quiet();
    });
  for (std::thread& thread : threads)
    thread.join();
  for (std::size_t thread = 0; thread < n_threads; ++thread)
    rma.wait_until(signals + thread, Compare::equal, 1, "signal", peer);
  for (std::size_t i = 0; i < n_threads * count; ++i)
    require(data[i] == i, "word " + std::to_string(i));
  runtime.teams().sync(team_world);
  ProxyProducer producer(runtime.proxy().channel(), proxy_context);
  require(producer.get_value(rma.locate(counter, 0), 8) == 2 * n_threads, "the counter");
  return {};
}

TEST(RuntimeProxy, TwoPesOverSharedMemory) {
  for (const PeResult& result : run_fork_job({.n_pes = 2, .body = communicate}))
    EXPECT_EQ(result.exit_code, 0) << result.text;
}

TEST(RuntimeProxy, FinishDrainsTheRings) {
  ForkJob job;
  job.body = [](Runtime& runtime) -> std::string {
    auto* word = static_cast<std::uint64_t*>(runtime.allocate(8));
    *word = 0;
    runtime.teams().sync(team_world);
    if (runtime.pe() == 0) {
      ProxyProducer producer(runtime.proxy().channel(), proxy_context);
      for (int i = 0; i < 3000; ++i)
        producer.post_atomic(runtime.rma().locate(word, 1), {AtomicOp::add, 8, 1, 0});
      return {}; // without quiet: the rest is finish()'s
    }
    runtime.rma().wait_until(word, Compare::equal, 3000, "requests of PE 0", 0);
    return {};
  };
  for (const PeResult& result : run_fork_job(job))
    EXPECT_EQ(result.exit_code, 0) << result.text;
}

TEST(RuntimeProxy, APeThatDiesEndsTheOthersProxy) {
  ForkJob job;
  job.body = [](Runtime& runtime) -> std::string {
    auto* word = static_cast<std::uint64_t*>(runtime.allocate(8));
    ProxyProducer producer(runtime.proxy().channel(), proxy_context);
    const RemoteAddress target = runtime.rma().locate(word, 1 - runtime.pe());
    for (int i = 0;; ++i) {
      if (runtime.pe() == 1 && i == 100)
        ::_exit(77);
      producer.put_value(target, 1, 8);
      producer.quiet();
    }
  };
  const std::vector<PeResult> results = run_fork_job(job);
  EXPECT_EQ(results[1].exit_code, 77);
  EXPECT_EQ(results[0].exit_code, 3) << results[0].text;
  EXPECT_NE(results[0].text.find("PE 1"), std::string::npos) << results[0].text;
}

} // namespace
} // namespace shmemctl
