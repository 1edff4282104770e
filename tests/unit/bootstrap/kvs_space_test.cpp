// What KvsBootstrap puts into a space: pieces, keys, characters.
#include <algorithm>
#include <condition_variable>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <thread>

#include "src/bootstrap/kvs_bootstrap.h"
#include "tests/unit/bootstrap/kvs_collectives.h"

namespace shmemctl::test {
namespace {

/// A space that all threads share.
struct World {
  int size;
  std::size_t max_value_bytes;
  bool binary;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values = {};
  std::map<int, int> puts = {}; ///< by rank
  std::vector<std::string> problems = {};
  int arrived = 0, generation = 0;
};

class SharedSpace final : public KeyValueSpace {
public:
  SharedSpace(World& world, int rank) : world_(world), rank_(rank) {}
  const char* name() const override { return "shared"; }
  int rank() const override { return rank_; }
  int size() const override { return world_.size; }
  std::size_t max_key_bytes() const override { return 63; }
  std::size_t max_value_bytes() const override { return world_.max_value_bytes; }
  bool binary_values() const override { return world_.binary; }

  void put(const std::string& key, const std::string& value, const Deadline&) override {
    const std::lock_guard lock(world_.mutex);
    if (!world_.values.emplace(key, value).second)
      world_.problems.push_back("key used twice: " + key);
    if (key.size() > max_key_bytes() || value.empty() || value.size() > max_value_bytes())
      world_.problems.push_back("lengths of " + key);
    const auto plain = [](unsigned char letter) { return std::isalnum(letter) || letter == '-'; };
    if (!std::all_of(key.begin(), key.end(), plain))
      world_.problems.push_back("letters of " + key);
    if (!binary_values() && value.find_first_of("=; \t\n\0") != std::string::npos)
      world_.problems.push_back("letters of the value of " + key);
    ++world_.puts[rank_];
  }
  void fence(const Deadline&) override {
    std::unique_lock lock(world_.mutex);
    const int mine = world_.generation;
    if (++world_.arrived == world_.size) {
      world_.arrived = 0;
      ++world_.generation;
      world_.changed.notify_all();
    }
    world_.changed.wait(lock, [&] { return world_.generation != mine; });
  }
  std::optional<std::string> get(int, const std::string& key, const Deadline&) override {
    const std::lock_guard lock(world_.mutex);
    const auto found = world_.values.find(key);
    return found == world_.values.end() ? std::nullopt : std::optional(found->second);
  }
  void abort(ExitCode, const std::string&) noexcept override {}
  void finish(const Deadline&) override {}
  void leave(const Deadline&) noexcept override {}

private:
  World& world_;
  int rank_;
};

void run_world(World& world, const std::function<void(Bootstrap&)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.size; ++rank)
    threads.emplace_back([&, rank] {
      const auto bootstrap = make_kvs_bootstrap(std::make_unique<SharedSpace>(world, rank), soon());
      body(*bootstrap);
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(world.problems, std::vector<std::string>());
}

TEST(KvsSpace, PiecesOfEveryLimitAndLength) {
  for (const bool binary : {true, false})
    for (const std::size_t limit : {std::size_t{48}, std::size_t{63}, std::size_t{64}}) {
      World world{
          .size = 3, .max_value_bytes = limit, .binary = binary, .mutex = {}, .changed = {}};
      run_world(world, [](Bootstrap& bootstrap) {
        std::vector<std::size_t> sizes(150);
        for (std::size_t at = 0; at < sizes.size(); ++at)
          sizes[at] = at;
        run_all_collectives(bootstrap, sizes);
      });
    }
}

TEST(KvsSpace, OnlyTheRootOfABroadcastPuts) {
  World world{.size = 4, .max_value_bytes = 1000, .binary = true, .mutex = {}, .changed = {}};
  run_world(world, [](Bootstrap& bootstrap) {
    char data[100] = {};
    bootstrap.broadcast(data, sizeof data, 2, soon());
  });
  EXPECT_EQ(world.puts, (std::map<int, int>{{0, 1}, {1, 1}, {2, 2}, {3, 1}})); // with the hellos
}

TEST(KvsSpace, AllToAllPutsOneValueForEachOther) {
  World world{.size = 4, .max_value_bytes = 1000, .binary = true, .mutex = {}, .changed = {}};
  run_world(world, [](Bootstrap& bootstrap) {
    char send[40] = {}, receive[40];
    bootstrap.alltoall(send, receive, 10, soon());
  });
  EXPECT_EQ(world.puts, (std::map<int, int>{{0, 4}, {1, 4}, {2, 4}, {3, 4}}));
}

TEST(KvsSpace, OneProcessNeedsNoSpace) {
  World world{.size = 1, .max_value_bytes = 1, .binary = true, .mutex = {}, .changed = {}};
  run_world(world, [](Bootstrap& bootstrap) { run_all_collectives(bootstrap, {0, 5, 100}); });
  EXPECT_TRUE(world.puts.empty());
}

TEST(KvsSpace, ValuesTooShortToUseAreRefused) {
  World world{.size = 2, .max_value_bytes = 20, .binary = false, .mutex = {}, .changed = {}};
  try {
    make_kvs_bootstrap(std::make_unique<SharedSpace>(world, 0), soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(error.message().find("20 bytes only"), std::string::npos) << error.message();
  }
}

} // namespace
} // namespace shmemctl::test
