// Order and completion through the proxy: fence, signals, quiet; and a PE that is killed.
#include <array>
#include <csignal>
#include <unistd.h>

#include "tests/unit/runtime/proxy/network/network.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t flag_at = 64, ack_at = 128, data_at = 4096, data_words = 1000;

std::uint64_t word_at(const ProxyPe& me, std::size_t offset_bytes) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(me.heap + offset_bytes))
      .load(std::memory_order_acquire);
}

/// The data is never older than the flag that was put after a fence.
TEST_P(ProxyNetwork, AFenceOrdersPuts) {
  run(3, [](ProxyPe& me) {
    constexpr std::uint64_t rounds = 150;
    if (me.pe == 0) {
      ProxyProducer producer(me.proxy->channel(), proxy_context);
      std::vector<std::vector<std::uint64_t>> data(rounds + 1); // each stays unchanged until quiet
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        data[round].assign(data_words, round);
        for (const int to : {1, 2})
          producer.put(me.at(to, data_at), data[round].data(), data_words * 8);
        producer.fence(round % 2 == 0 ? -1 : 1);
        if (round % 2 != 0)
          producer.fence(2);
        for (const int to : {2, 1})
          producer.put_value(me.at(to, flag_at), round, 8);
        if (round % 3 == 0)
          producer.fence();
      }
      producer.quiet();
    } else {
      for (std::uint64_t seen = 0; seen < rounds; std::this_thread::yield()) {
        seen = word_at(me, flag_at);
        for (std::size_t word = 0; word < data_words; word += 37)
          require(word_at(me, data_at + word * 8) >= seen,
                  "word " + std::to_string(word) + " when the flag was " + std::to_string(seen));
      }
    }
    me.barrier();
  });
}

TEST_P(ProxyNetwork, ASignalArrivesAfterItsData) {
  run(3, [](ProxyPe& me) {
    constexpr std::array<std::size_t, 6> sizes = {0, 8, 500, 5000, 70000, 300000};
    ProxyProducer producer(me.proxy->channel(), proxy_context);
    std::vector<std::byte> data(sizes.back());
    std::uint64_t round = 0;
    const int to = (me.pe + 1) % me.n_pes, from = (me.pe + me.n_pes - 1) % me.n_pes;
    for (int turn = 0; turn < 4; ++turn)
      for (const std::size_t size_bytes : sizes) {
        ++round;
        fill(data.data(), size_bytes, round * 3 + static_cast<std::uint64_t>(me.pe));
        const SignalOp op = turn % 2 == 0 ? SignalOp::set : SignalOp::add;
        producer.put_signal(me.at(to, data_at), data.data(), size_bytes, me.at(to, flag_at),
                            op == SignalOp::set ? round : 1, op, turn > 1);
        me.wait_word(flag_at, round, from);
        require_filled(me.heap + data_at, size_bytes, round * 3 + static_cast<std::uint64_t>(from),
                       "data of a signal");
        producer.put_value(me.at(from, ack_at), round, 8);
        producer.quiet(); // the data may be overwritten here
        me.wait_word(ack_at, round, to);
      }
  });
}

/// What any thread issued before a quiet is at its target after it, whichever thread calls quiet.
TEST_P(ProxyNetwork, AQuietCompletesTheRequestsOfAll) {
  run(3, [](ProxyPe& me) {
    constexpr int n_threads = 3;
    constexpr std::size_t each_bytes = 50000;
    const auto place = [](int pe, int thread) {
      return data_at + static_cast<std::size_t>(pe * n_threads + thread) * each_bytes;
    };
    for (std::uint64_t round = 1; round <= 8; ++round) {
      std::vector<std::vector<std::byte>> data(n_threads, std::vector<std::byte>(each_bytes));
      std::vector<std::unique_ptr<ProxyProducer>> producers;
      for (int thread = 0; thread < n_threads; ++thread) {
        fill(data[static_cast<std::size_t>(thread)].data(), each_bytes,
             round * 100 + static_cast<std::uint64_t>(me.pe * n_threads + thread));
        producers.push_back(std::make_unique<ProxyProducer>(me.proxy->channel(), proxy_context));
      }
      in_threads(n_threads, [&](int thread) {
        const auto index = static_cast<std::size_t>(thread);
        for (int to = 0; to < me.n_pes; ++to)
          for (std::size_t at = 0; at < each_bytes; at += 5000)
            producers[index]->put(me.at(to, place(me.pe, thread) + at), data[index].data() + at,
                                  5000);
      });
      producers[round % n_threads]->quiet();
      me.barrier();
      for (int pe = 0; pe < me.n_pes; ++pe)
        for (int thread = 0; thread < n_threads; ++thread)
          require_filled(me.heap + place(pe, thread), each_bytes,
                         round * 100 + static_cast<std::uint64_t>(pe * n_threads + thread),
                         "put of PE " + std::to_string(pe));
      me.barrier();
    }
  });
}

/// Every waiting thread is notified, and learns which PE it was.
TEST_P(ProxyNetwork, AKilledPeEndsAllProducers) {
  if (!GetParam().processes)
    GTEST_SKIP() << "a thread cannot be killed";
  const std::vector<PeResult> results = run_processes(3, [](ProxyPe& me) {
    constexpr int n_threads = 4;
    std::array<std::string, n_threads> said;
    // The proxy reads it until it is closed, also for a producer that has got its error.
    static std::array<std::vector<std::byte>, n_threads> sources;
    in_threads(n_threads, [&](int thread) {
      const int other = me.pe == 2 ? 0 : 2;
      std::vector<std::byte>& data = sources[static_cast<std::size_t>(thread)];
      data.resize(20000);
      try {
        ProxyProducer producer(me.proxy->channel(), proxy_context);
        for (int i = 0;; ++i) {
          if (me.pe == 1 && thread == 0 && i == 50)
            ::kill(::getpid(), SIGKILL);
          const int to = me.pe == 1 || thread % 2 != 0 ? other : 1;
          producer.put(me.at(to, data_at), data.data(), data.size());
          if (thread < 2)
            producer.atomic(me.at(to, 64), {AtomicOp::add, 8, 1});
          else
            producer.quiet();
        }
      } catch (const Error& error) {
        said[static_cast<std::size_t>(thread)] = error.message();
      }
    });
    for (const std::string& words : said)
      require(words.find("PE 1") != std::string::npos, "a producer said: " + words);
    throw Error(ExitCode::unavailable, "all producers", "go on", "PE 1 is named by each", "-");
  });
  if (results.empty())
    return;
  EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
  for (const std::size_t pe : {0, 2}) {
    EXPECT_EQ(results[pe].exit_code, 3) << results[pe].text;
    EXPECT_NE(results[pe].text.find("PE 1"), std::string::npos) << results[pe].text;
    EXPECT_EQ(results[pe].text.find("compare"), std::string::npos) << results[pe].text;
  }
}

} // namespace
} // namespace shmemctl::test
