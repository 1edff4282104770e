// User buffers between real processes, each with a whole Runtime.
#include <chrono>
#include <gtest/gtest.h>

#include "src/runtime/registered_memory.h"
#include "tests/support/exchange_buffers.h"
#include "tests/support/fork_job.h"
#include "tests/unit/runtime/buffers/buffer_world.h"

namespace shmemctl {
namespace {

using test::BlockingPage;
using test::exchange;
using test::first_wrong;
using test::ForkJob;
using test::Pages;
using test::patterned;
using test::PeResult;
using test::run_fork_job;

void require(bool good, const std::string& what) {
  if (!good)
    throw Error(ExitCode::finding, "buffers", "compare", what, "-");
}

std::string put_and_get_all(Runtime& runtime) {
  constexpr std::size_t block_bytes = 100001;
  Buffers& buffers = runtime.buffers();
  const auto count = static_cast<std::size_t>(runtime.n_pes());
  const auto me = static_cast<unsigned>(runtime.pe());
  std::vector<std::byte> memory(count * block_bytes);
  const BufferHandle handle = buffers.add(memory.data(), memory.size());
  const std::vector<BufferDescriptor> all = exchange(runtime, buffers.describe(handle));
  const auto mine = patterned(block_bytes, me + 1);
  for (std::size_t pe = 0; pe < count; ++pe)
    buffers.put(all[pe], me * block_bytes, mine.data(), mine.size());
  runtime.collectives().barrier(team_world);
  for (std::size_t pe = 0; pe < count; ++pe) {
    const auto seed = static_cast<unsigned>(pe + 1);
    require(first_wrong(memory.data() + pe * block_bytes, block_bytes, seed) == block_bytes,
            "what PE " + std::to_string(pe) + " put");
    std::vector<std::byte> got(block_bytes);
    buffers.get(got.data(), all[pe], me * block_bytes, got.size());
    require(got == mine, "what was got from PE " + std::to_string(pe));
  }
  runtime.collectives().barrier(team_world);
  buffers.remove(handle);
  require(first_wrong(memory.data() + me * block_bytes, block_bytes, me + 1) == block_bytes,
          "the memory after it was unregistered");
  return "";
}

TEST(BuffersOfProcesses, EveryPeWritesIntoEveryBuffer) {
  for (const int n_pes : {1, 2, 5})
    for (const PeResult& result : run_fork_job({.n_pes = n_pes, .body = put_and_get_all})) {
      EXPECT_EQ(result.exit_code, 0) << result.text;
      EXPECT_EQ(result.text, "");
    }
}

TEST(BuffersOfProcesses, TheHeapIsRefusedAndOtherNodesAreNotReached) {
  ForkJob job{.n_pes = 2,
              .n_nodes = 2,
              .environment = {{"SHMEMCTL_REMOTE_TRANSPORT", "none"}},
              .require_reach = false};
  job.body = [](Runtime& runtime) -> std::string {
    const int other = 1 - runtime.pe();
    RegisteredMemory memory(runtime, 100);
    try {
      runtime.buffers().path_to(memory.of(other));
    } catch (const Error& error) {
      memory.free();
      return error.message() + "; " + no_buffers_reason(runtime, other);
    }
    return "reached";
  };
  for (const PeResult& result : run_fork_job(job))
    for (const char* part : {"that PE shares no memory with PE", "reached within a node only"})
      EXPECT_NE(result.text.find(part), std::string::npos) << result.text;
  job.n_nodes = 1;
  job.body = [](Runtime& runtime) -> std::string {
    void* heap = runtime.allocate(100);
    try {
      runtime.buffers().add(heap, 100);
    } catch (const Error& error) {
      runtime.free(heap);
      return error.message();
    }
    return "accepted";
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_NE(result.text.find("symmetric heap"), std::string::npos) << result.text;
  }
}

/// A PE that is killed while it has a buffer open does not block its unregistration.
TEST(BuffersOfProcesses, AKilledPeHoldsNothing) {
  ForkJob job{.n_pes = 2, .body = [](Runtime& runtime) -> std::string {
                Pages pages(4);
                Buffers& buffers = runtime.buffers();
                const BufferHandle handle = buffers.add(pages.base(), pages.size_bytes());
                const auto all = exchange(runtime, buffers.describe(handle));
                if (runtime.pe() == 1) {
                  const auto sent = patterned(pages.size_bytes(), 3);
                  buffers.put(all[0], 0, sent.data(), sent.size());
                  ::raise(SIGKILL);
                }
                try {
                  const std::uint64_t never = 0;
                  runtime.rma().wait_until(&never, Compare::not_equal, 0, "the end of PE 1", 1);
                } catch (const Error&) {
                  buffers.remove(handle);
                }
                require(first_wrong(pages.base(), pages.size_bytes(), 3) == pages.size_bytes(),
                        "what PE 1 put before it was killed");
                return "removed\n";
              }};
  const std::vector<PeResult> results = run_fork_job(job);
  EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
  EXPECT_NE(results[0].text.find("removed"), std::string::npos) << results[0].text;
  EXPECT_NE(results[0].text.find("PE 1"), std::string::npos) << results[0].text;
}

/// Killed in the middle of a put: unregistering ends at once, successfully or naming the PE.
TEST(BuffersOfProcesses, APeKilledInAPutIsNotWaitedFor) {
  if (!BlockingPage().works())
    GTEST_SKIP() << "userfaultfd is not permitted here";
  ForkJob job{.n_pes = 2, .body = [](Runtime& runtime) -> std::string {
                Pages pages(2); // one to put, and one to check
                Buffers& buffers = runtime.buffers();
                const BufferHandle handle = buffers.add(pages.base(), pages.size_bytes());
                auto* begun = static_cast<std::uint64_t*>(runtime.allocate(8));
                *begun = 0;
                const auto all = exchange(runtime, buffers.describe(handle));
                if (runtime.pe() == 1) {
                  BlockingPage source;
                  std::thread putter([&] { buffers.put(all[0], 0, source.base(), page_bytes()); });
                  source.wait_for_reader();
                  const std::uint64_t one = 1;
                  runtime.rma().put(begun, &one, 8, 0);
                  try {
                    for (std::uint64_t word = 0;;)
                      buffers.get(&word, all[0], page_bytes(), 8);
                  } catch (const Error&) {
                    ::raise(SIGKILL); // PE 0 is unregistering it now
                  }
                }
                runtime.rma().wait_until(begun, Compare::equal, 1, "the put of PE 1", 1);
                const auto start = std::chrono::steady_clock::now();
                std::string end = "removed";
                try {
                  buffers.remove(handle);
                } catch (const Error& error) {
                  end = error.message();
                }
                require(std::chrono::steady_clock::now() - start < std::chrono::seconds(50),
                        "time to notice");
                return end + "\n";
              }};
  const std::vector<PeResult> results = run_fork_job(job);
  EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
  const std::string& text = results[0].text;
  EXPECT_TRUE(text.find("removed\n") == 0 || text.find("PE 1") < text.find('\n')) << text;
}

} // namespace
} // namespace shmemctl
