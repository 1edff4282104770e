// Operations in flight while a buffer is unregistered, and concurrent threads.
#include <gtest/gtest.h>
#include <mutex>

#include "tests/unit/runtime/buffers/buffer_world.h"

namespace shmemctl {
namespace {

using test::BlockingPage;
using test::BufferWorld;
using test::expect_error;
using test::first_wrong;
using test::Pages;
using test::patterned;

/// Waits until the owner of the buffer at this address has begun to unregister it. Sends no
/// request: threads of a PE take turns at its staging area.
void wait_until_withdrawn(const Buffers& owner, const void* address) {
  while (owner.starting_at(address))
    std::this_thread::yield();
}

class InFlight : public testing::TestWithParam<buffers::AllowedPaths> {
protected:
  void SetUp() override {
    if (!source.works())
      GTEST_SKIP() << "userfaultfd is not permitted here";
  }
  BlockingPage source;
};

/// Close while in use: a put that has begun ends in the registered memory, and what it wrote is
/// there when unregistering returns.
TEST_P(InFlight, UnregisterWaitsForAPut) {
  const Pages pages(1);
  BufferWorld world(2, [&](BuffersConfig& config) { config.allowed = GetParam(); });
  const BufferHandle handle = world[0].add(pages.base(), pages.size_bytes());
  const BufferDescriptor descriptor = world[0].describe(handle);
  world[1].path_to(descriptor);
  std::thread putter([&] { world[1].put(descriptor, 0, source.base(), page_bytes()); });
  source.wait_for_reader();
  std::atomic<bool> removed{false};
  std::thread remover([&] {
    world[0].remove(handle);
    removed.store(true);
  });
  wait_until_withdrawn(world[0], pages.base());
  // An owner that does not wait would have returned long before this.
  for (int turn = 0; turn < 100 && !removed.load(); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(removed.load());
  source.release(5);
  putter.join();
  remover.join();
  EXPECT_EQ(first_wrong(pages.base(), page_bytes(), 5), page_bytes());
}

/// The wait is bounded and names the PE; the slot is not reused, the buffer is unusable, and other
/// buffers continue to work.
TEST_P(InFlight, UnregisterNamesThePeStillInFlight) {
  const Pages pages(1), others(1);
  BufferWorld world(2, [&](BuffersConfig& config) {
    config.allowed = GetParam();
    config.timeout_s = config.pe == 0 ? 0.2 : 60;
  });
  const BufferHandle handle = world[0].add(pages.base(), pages.size_bytes());
  const BufferDescriptor descriptor = world[0].describe(handle);
  world[1].path_to(descriptor);
  std::thread putter([&] { world[1].put(descriptor, 0, source.base(), page_bytes()); });
  source.wait_for_reader();
  expect_error(ExitCode::deadline, {"unregister", "PE 1"}, [&] { world[0].remove(handle); });
  std::uint64_t word = 7;
  expect_error(ExitCode::usage, {"registered"}, [&] { world[1].put(descriptor, 0, &word, 8); });
  const BufferHandle other = world[0].add(others.base(), others.size_bytes());
  EXPECT_NE(other.slot, handle.slot);
  source.release(1);
  putter.join();
  world[1].put(world[0].describe(other), 0, &word, 8);
  EXPECT_EQ(std::memcmp(others.base(), &word, 8), 0);
  world[0].remove(other);
}

TEST_P(InFlight, AnEvictedBufferStaysUntilItsPutEnds) {
  if (!GetParam().zero_copy)
    GTEST_SKIP() << "the others cannot be opened while a thread is at the staging area";
  const Pages pages(4);
  BufferWorld world(2, [&](BuffersConfig& config) {
    config.allowed = GetParam();
    config.open_limit = 1;
  });
  const BufferDescriptor descriptor = world[0].describe(world[0].add(pages.base(), page_bytes()));
  world[1].path_to(descriptor);
  std::thread putter([&] { world[1].put(descriptor, 0, source.base(), page_bytes()); });
  source.wait_for_reader();
  for (std::size_t page = 1; page < 4; ++page)
    world[1].path_to(
        world[0].describe(world[0].add(pages.base() + page * page_bytes(), page_bytes())));
  EXPECT_EQ(world[1].open_count(), 1u);
  source.release(6);
  putter.join();
  EXPECT_EQ(first_wrong(pages.base(), page_bytes(), 6), page_bytes());
}

INSTANTIATE_TEST_SUITE_P(Buffers, InFlight,
                         testing::Values(buffers::AllowedPaths{true, true},
                                         buffers::AllowedPaths{false, false}),
                         [](const testing::TestParamInfo<buffers::AllowedPaths>& allowed) {
                           return allowed.param.zero_copy ? "mapped" : "staged";
                         });

/// Two PEs register, unregister and write into each other's buffers from many threads. A put
/// either is refused, or what it wrote is there when the owner's unregistering returns.
void churn(buffers::AllowedPaths allowed, int turns) {
  constexpr int n_pes = 2, writers = 2, buffers_each = 3;
  constexpr std::size_t words = 512;
  struct Shown {
    std::mutex mutex;
    BufferDescriptor descriptor;
  };
  std::array<std::array<Shown, buffers_each>, n_pes> shown;
  std::vector<std::unique_ptr<Pages>> memory;
  for (int i = 0; i < n_pes * buffers_each; ++i)
    memory.push_back(std::make_unique<Pages>(2));
  BufferWorld world(n_pes, [&](BuffersConfig& config) {
    config.allowed = allowed;
    config.open_limit = 2;
  });
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> puts{0}, refused{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int pe = 0; pe < n_pes; ++pe)
    for (int writer = 0; writer < writers; ++writer)
      threads.emplace_back([&, pe, writer] {
        std::vector<std::uint64_t> data(words / writers), back(words / writers);
        for (std::uint64_t turn = 1; !stop.load(); ++turn) {
          Shown& target = shown[static_cast<std::size_t>(1 - pe)][turn % buffers_each];
          BufferDescriptor descriptor;
          {
            const std::lock_guard lock(target.mutex);
            descriptor = target.descriptor;
          }
          if (descriptor.magic == 0)
            continue;
          std::fill(data.begin(), data.end(), descriptor.generation);
          const std::uint64_t offset =
              static_cast<std::uint64_t>(writer) * data.size() * sizeof data[0];
          try {
            world[pe].put(descriptor, offset, data.data(), data.size() * sizeof data[0]);
            world[pe].get(back.data(), descriptor, offset, back.size() * sizeof back[0]);
            wrong.fetch_add(back == data ? 0 : 1);
            puts.fetch_add(1);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage) << error.message();
            refused.fetch_add(1);
          }
        }
      });
  std::vector<std::thread> owners;
  for (int pe = 0; pe < n_pes; ++pe)
    for (std::size_t buffer = 0; buffer < buffers_each; ++buffer)
      owners.emplace_back([&, pe, buffer] {
        Pages& pages = *memory[static_cast<std::size_t>(pe) * buffers_each + buffer];
        for (int turn = 0; turn < turns; ++turn) {
          std::memset(pages.base(), 0, pages.size_bytes());
          const BufferHandle handle = world[pe].add(pages.base(), pages.size_bytes());
          const std::uint64_t before = puts.load() + refused.load();
          {
            const std::lock_guard lock(shown[static_cast<std::size_t>(pe)][buffer].mutex);
            shown[static_cast<std::size_t>(pe)][buffer].descriptor = world[pe].describe(handle);
          }
          while (puts.load() + refused.load() < before + 3)
            std::this_thread::yield();
          world[pe].remove(handle);
          // Only puts of this registration may have arrived.
          for (std::size_t word = 0; word < words; ++word) {
            std::uint64_t value = 0;
            std::memcpy(&value, pages.base() + word * sizeof value, sizeof value);
            if (value != 0 && value != handle.generation)
              wrong.fetch_add(1);
          }
        }
      });
  for (std::thread& owner : owners)
    owner.join();
  stop.store(true);
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(puts.load(), 0u);
}

TEST(Buffers, ThreadsRegisterAndPutAtOnceMapped) {
  churn({true, true}, 150);
}
TEST(Buffers, ThreadsRegisterAndPutAtOnceByAttach) {
  churn({false, true}, 150);
}
TEST(Buffers, ThreadsRegisterAndPutAtOnceStaged) {
  churn({false, false}, 150);
}

} // namespace
} // namespace shmemctl
