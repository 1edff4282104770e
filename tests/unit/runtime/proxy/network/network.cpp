#include "tests/unit/runtime/proxy/network/network.h"

#include <exception>

#include "src/runtime/collectives.h"
#include "src/runtime/rma.h"
#include "src/runtime/teams.h"

namespace shmemctl::test {

namespace {

constexpr const char* not_reached = "not reached: ";

/// The part of one process.
std::string run_on(Runtime& runtime, const ProxyBody& body) {
  std::string reason;
  for (std::size_t pe = 0; pe < runtime.transport_index_by_pe().size(); ++pe)
    if (runtime.transport_index_by_pe()[pe] < 0)
      for (const TransportEntry& entry : runtime.transports())
        reason = entry.reach[pe].reason;
  for (const std::string& each : runtime.gather_text(reason))
    if (!each.empty())
      return not_reached + each;
  ProxyPe me;
  me.pe = runtime.pe();
  me.n_pes = runtime.n_pes();
  me.heap = static_cast<std::byte*>(runtime.allocate(proxy_heap_bytes));
  std::memset(me.heap, 0, proxy_heap_bytes);
  me.proxy = &runtime.proxy();
  me.at = [&](int pe, std::size_t offset_bytes) {
    return runtime.rma().locate(me.heap + offset_bytes, pe);
  };
  me.barrier = [&] { runtime.teams().sync(team_world); };
  me.wait_word = [&](std::size_t offset_bytes, std::uint64_t value, int from) {
    runtime.rma().wait_until(reinterpret_cast<std::uint64_t*>(me.heap + offset_bytes),
                             Compare::equal, value, "word of a proxy", from);
  };
  me.barrier(); // the heaps are zeroed
  body(me);
  me.barrier();
  return {};
}

} // namespace

std::vector<PeResult> ProxyNetwork::run_processes(int n_pes, const ProxyBody& body) {
  ForkJob job;
  job.n_pes = n_pes;
  job.n_nodes = GetParam().one_node ? 1 : n_pes;
  job.environment = GetParam().environment;
  job.environment["SHMEMCTL_PROXY_THREADS"] = std::to_string(GetParam().threads);
  job.environment["SHMEMCTL_SYMMETRIC_SIZE"] = "64M";
  job.require_reach = false;
  job.body = [&](Runtime& runtime) { return run_on(runtime, body); };
  std::vector<PeResult> results = run_fork_job(job);
  for (const PeResult& result : results)
    if (result.text.rfind(not_reached, 0) == 0) {
      skip(result.text);
      return {};
    }
  return results;
}

void ProxyNetwork::run(int n_pes, const ProxyBody& body) {
  if (GetParam().run_in_threads) {
    const std::string reason = GetParam().run_in_threads(n_pes, GetParam().threads, body);
    if (!reason.empty())
      skip(reason);
    return;
  }
  for (const PeResult& result : run_processes(n_pes, body))
    EXPECT_EQ(result.exit_code, 0) << result.text;
}

void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        errors[static_cast<std::size_t>(i)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::exception_ptr& error : errors)
    if (error)
      std::rethrow_exception(error);
}

} // namespace shmemctl::test
