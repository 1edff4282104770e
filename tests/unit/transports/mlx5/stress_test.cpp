// Threads, the emulated HCA's thread, and tiny queues, for ThreadSanitizer.
#include <atomic>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "tests/unit/transports/mlx5/emulated_hca_world.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/host_qp.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr std::uint64_t rounds = 3'000;
#else
constexpr std::uint64_t rounds = 30'000;
#endif
constexpr std::size_t n_threads = 4;

/// A queue with an HCA that has a thread, to memory of `size` words.
struct ThreadWorld {
  std::vector<std::uint64_t> there, here;
  std::shared_ptr<MappedExecutor> way = std::make_shared<MappedExecutor>();
  std::unique_ptr<EmulatedHca> hca;
  std::unique_ptr<HcaMemory> memory;
  JobHealth health;
  std::unique_ptr<HostQp> queue;

  ThreadWorld(const QpOptions& options, bool has_thread, std::size_t size = 4096)
      : there(size), here(size) {
    EmulatedHcaOptions emulated = EmulatedWorld::emulated_options(way);
    emulated.has_thread = has_thread;
    emulated.idle_spins = 20;
    hca = std::make_unique<EmulatedHca>(emulated);
    memory = hca->register_memory({here.data(), size * 8, access_all});
    KeyWindow window;
    window.key = EmulatedWorld::rkey;
    window.address = address_of(there.data());
    window.size_bytes = size * 8;
    window.access = access_all;
    window.mapped = reinterpret_cast<std::byte*>(there.data());
    way->add(window);
    queue = std::make_unique<HostQp>(*hca, options, health, 1, std::chrono::seconds(60));
    queue->connect(queue->local());
  }
  RaddrSegment at(std::size_t word) const {
    return {address_of(there.data() + word), EmulatedWorld::rkey};
  }
};

/// Each thread writes its numbers to its own word, from memory that is reused after a quiet, reads
/// them back, and adds to a shared word.
void use(ThreadWorld& world, std::size_t number) {
  std::mt19937 random(static_cast<unsigned>(number));
  HostQp& queue = *world.queue;
  constexpr std::size_t slots = 32;
  std::uint64_t* data =
      world.here.data() + number * 64; // plain words: ThreadSanitizer reports a race
  std::uint64_t sent = 0, quiet_at = 0, added = 0;
  std::uint64_t last = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Post post{random() % 3 == 0 ? DoorbellMode::later : DoorbellMode::now, random() % 5 == 0,
                    false};
    switch (random() % 8) {
    case 0: {
      const std::uint64_t old = queue.fetch(world.at(0), atomic_add(8, 1));
      EXPECT_GE(old, last);
      last = old;
      ++added;
      break;
    }
    case 1:
      queue.update(world.at(0), atomic_add(8, 1), post);
      ++added;
      break;
    case 2: {
      std::array<std::uint64_t, 11> many;
      many.fill(round);
      queue.write_inline(world.at(512 + 64 * number), many.data(), sizeof many, post);
      break;
    }
    case 3:
      if (sent > 0) {
        queue.flush();
        queue.wait(queue.read(world.at(1 + number), data + slots, world.memory->lkey(), 8,
                              {DoorbellMode::now, true, false}));
        EXPECT_EQ(data[slots], sent);
      }
      break;
    default:
      if (sent - quiet_at == slots) {
        queue.quiet();
        EXPECT_EQ(std::atomic_ref(world.there[1 + number]).load(), sent);
        quiet_at = sent;
      }
      ++sent;
      data[sent % slots] = sent;
      queue.write(world.at(1 + number), &data[sent % slots], world.memory->lkey(), 8, post);
    }
  }
  queue.quiet();
  EXPECT_EQ(std::atomic_ref(world.there[1 + number]).load(), sent);
  std::atomic_ref(world.there[256]).fetch_add(added);
}

void run(ThreadWorld& world) {
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < n_threads; ++number)
    threads.emplace_back([&, number] { use(world, number); });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(world.there[0], world.there[256]);
}

TEST(Mlx5Stress, ManyThreadsOnATinyQueue) {
  for (const CqMode mode : {CqMode::ring, CqMode::collapsed}) {
    QpOptions options = EmulatedWorld::small_ring();
    options.completions = mode;
    ThreadWorld world(options, true);
    run(world);
  }
}

TEST(Mlx5Stress, ManyThreadsOnTheUsualQueue) {
  for (const CqMode mode : {CqMode::ring, CqMode::collapsed}) {
    QpOptions options;
    options.completions = mode;
    ThreadWorld world(options, true);
    run(world);
  }
}

TEST(Mlx5Stress, AnHcaThatItsUsersServe) {
  QpOptions options = EmulatedWorld::small_ring();
  ThreadWorld world(options, false);
  run(world);
}

TEST(Mlx5Stress, RegistrationsAndQueuesBesideTraffic) {
  ThreadWorld world({}, true);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::array<std::byte, 64> bytes{};
    while (!stop.load()) {
      const auto memory = world.hca->register_memory({bytes.data(), bytes.size(), access_all});
      JobHealth health;
      HostQp queue(*world.hca, EmulatedWorld::small_ring(), health, 2, std::chrono::seconds(60));
      queue.connect(queue.local());
      queue.read(world.at(0), bytes.data(), memory->lkey(), 8);
      queue.quiet();
    }
  });
  run(world);
  stop.store(true);
  other.join();
}

/// Two queues of two HCAs to the same words: atomics of both sizes are atomic among themselves.
TEST(Mlx5Stress, AtomicsOfTwoDevices) {
  ThreadWorld one({}, true);
  auto way = std::make_shared<MappedExecutor>();
  EmulatedHcaOptions options = EmulatedWorld::emulated_options(way);
  options.has_thread = true;
  EmulatedHca hca(options);
  KeyWindow window;
  window.key = EmulatedWorld::rkey;
  window.address = address_of(one.there.data());
  window.size_bytes = 64;
  window.access = access_all;
  window.mapped = reinterpret_cast<std::byte*>(one.there.data());
  way->add(window);
  HostQp other(hca, {}, one.health, 1, std::chrono::seconds(60));
  other.connect(other.local());
  const auto work = [&](HostQp& queue) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      queue.update(one.at(0), atomic_add(8, 1));
      queue.update(one.at(1), atomic_add(4, 1));
      queue.update(one.at(2), atomic_xor(8, 1));
    }
    queue.quiet();
  };
  std::thread thread([&] { work(other); });
  work(*one.queue);
  thread.join();
  EXPECT_EQ(one.there[0], 2 * rounds);
  EXPECT_EQ(one.there[1] & 0xffffffff, 2 * rounds);
  EXPECT_EQ(one.there[2], 0u);
}

} // namespace
} // namespace shmemctl::test
