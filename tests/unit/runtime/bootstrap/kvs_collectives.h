// Runs every collective of a bootstrap and checks what it delivers.
#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "src/runtime/bootstrap/bootstrap.h"
#include "tests/support/soon.h"

namespace shmemctl::test {

/// What `from` sends to `to`.
inline std::vector<std::uint8_t> message(int from, int to, std::size_t size_bytes) {
  std::vector<std::uint8_t> bytes(size_bytes);
  std::uint64_t state = static_cast<std::uint64_t>(from) * 1000003U +
                        static_cast<std::uint64_t>(to) * 8191U + size_bytes + 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::uint8_t>(state >> 56);
  }
  return bytes;
}

inline std::vector<std::uint8_t> messages(const std::vector<std::pair<int, int>>& pairs,
                                          std::size_t size_bytes) {
  std::vector<std::uint8_t> all;
  for (const auto& [from, to] : pairs) {
    const auto one = message(from, to, size_bytes);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline void run_all_collectives(Bootstrap& bootstrap, const std::vector<std::size_t>& sizes) {
  const int me = bootstrap.rank(), ranks = bootstrap.size();
  std::vector<std::pair<int, int>> gathered, sent, received;
  for (int rank = 0; rank < ranks; ++rank) {
    gathered.emplace_back(rank, 0);
    sent.emplace_back(me, rank);
    received.emplace_back(rank, me);
  }
  for (const std::size_t size_bytes : sizes) {
    const std::size_t total = size_bytes * static_cast<std::size_t>(ranks);
    std::vector<std::uint8_t> all(total);
    bootstrap.allgather(message(me, 0, size_bytes).data(), all.data(), size_bytes, soon());
    EXPECT_EQ(all, messages(gathered, size_bytes));
    all.assign(total, 0);
    std::uint8_t* mine = all.data() + static_cast<std::size_t>(me) * size_bytes;
    const auto own = message(me, 0, size_bytes);
    std::copy(own.begin(), own.end(), mine);
    bootstrap.allgather(mine, all.data(), size_bytes, soon()); // in place
    EXPECT_EQ(all, messages(gathered, size_bytes));
    all.assign(total, 0);
    bootstrap.gather(own.data(), me == 0 ? all.data() : nullptr, size_bytes, soon());
    EXPECT_EQ(all, me == 0 ? messages(gathered, size_bytes) : std::vector<std::uint8_t>(total));
    all.assign(total, 0);
    bootstrap.alltoall(messages(sent, size_bytes).data(), all.data(), size_bytes, soon());
    EXPECT_EQ(all, messages(received, size_bytes));
    bootstrap.barrier(soon());
    for (const int root : {0, ranks - 1}) {
      auto data = message(me, 7, size_bytes);
      bootstrap.broadcast(data.data(), size_bytes, root, soon());
      EXPECT_EQ(data, message(root, 7, size_bytes));
    }
  }
}

} // namespace shmemctl::test
