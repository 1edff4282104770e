// Order: fence, put with signal, and passive targets.
#include "tests/unit/transports/conformance.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t flag_offset = 64, ack_offset = 128, data_offset = 4096;

/// The reader has checked: the writer may continue. Completed, since the writer waits for it.
void acknowledge(const TransportPe& me, int to, std::uint64_t round) {
  me.transport->put(1, heap_of(to, ack_offset + static_cast<std::size_t>(me.pe) * 64), &round,
                    sizeof round, true);
  me.transport->quiet(1);
}
void await_acknowledgement(const TransportPe& me, int from, std::uint64_t round) {
  wait_word(me, ack_offset + static_cast<std::size_t>(from) * 64, round, "acknowledgement");
}

/// PE 0 writes data, then, after a fence, a flag by `raise`; PE 1 checks the data as soon as it
/// sees the flag.
void fence_rounds(TransportPe& me, std::size_t size_bytes, int rounds,
                  const std::function<void(std::uint64_t round)>& raise) {
  std::vector<std::byte> data(size_bytes);
  const std::uint64_t before = word_at(me, flag_offset);
  me.barrier();
  for (std::uint64_t round = before + 1; round <= before + static_cast<unsigned>(rounds); ++round) {
    const auto seed = static_cast<unsigned>(round);
    if (me.pe == 0) {
      fill(data.data(), size_bytes, seed);
      const std::size_t half = size_bytes / 2;
      me.transport->put(0, heap_of(1, data_offset), data.data(), half, false);
      me.transport->put(0, heap_of(1, data_offset + half), data.data() + half, size_bytes - half,
                        false);
      me.transport->fence(0);
      raise(round);
      await_acknowledgement(me, 1, round);
      me.transport->quiet(0);
    } else {
      wait_word(me, flag_offset, round, "flag");
      ASSERT_EQ(first_difference(me.heap + data_offset, size_bytes, seed), size_bytes)
          << "of " << size_bytes << " bytes, round " << round;
      acknowledge(me, 0, round);
    }
  }
  // Both count on from the same number.
  if (me.pe == 0) {
    const std::uint64_t last = before + static_cast<unsigned>(rounds);
    std::memcpy(me.heap + flag_offset, &last, sizeof last);
  }
  me.barrier();
}

TEST_P(Conformance, FenceOrdersPutsAndWhatFollows) {
  run(2, [](TransportPe& me) {
    const RemoteAddress flag = heap_of(1, flag_offset);
    for (const std::size_t size_bytes : {std::size_t{8}, std::size_t{64}, std::size_t{4097},
                                         std::size_t{65536}, std::size_t{1} << 20}) {
      const int rounds = size_bytes > 65536 ? 10 : 40;
      std::uint64_t value = 0;
      fence_rounds(me, size_bytes, rounds, [&](std::uint64_t round) {
        value = round;
        me.transport->put(0, flag, &value, sizeof value, false);
      });
      fence_rounds(me, size_bytes, rounds, [&](std::uint64_t round) {
        me.transport->post_atomic(0, flag, {AtomicOp::set, 8, round});
      });
      fence_rounds(me, size_bytes, rounds, [&](std::uint64_t) {
        me.transport->post_atomic(0, flag, {AtomicOp::add, 8, 1});
      });
      fence_rounds(me, size_bytes, rounds, [&](std::uint64_t round) {
        EXPECT_EQ(me.transport->atomic(0, flag, {AtomicOp::add, 8, 1}), round - 1);
      });
      fence_rounds(me, size_bytes, rounds, [&](std::uint64_t) {
        me.transport->put_signal(0, flag, nullptr, 0, flag, 1, SignalOp::add, false);
      });
    }
  });
}

/// An atomic operation, then after a fence a put: the reverse order.
TEST_P(Conformance, FenceOrdersAtomicsBeforePuts) {
  run(2, [](TransportPe& me) {
    constexpr std::size_t counter_offset = 512;
    for (std::uint64_t round = 1; round <= 200; ++round) {
      if (me.pe == 0) {
        me.transport->post_atomic(0, heap_of(1, counter_offset), {AtomicOp::add, 8, 3});
        me.transport->fence(0);
        me.transport->put(0, heap_of(1, flag_offset), &round, sizeof round, true);
        await_acknowledgement(me, 1, round);
      } else {
        wait_word(me, flag_offset, round, "flag");
        ASSERT_EQ(word_at(me, counter_offset), 3 * round);
        acknowledge(me, 0, round);
      }
    }
    me.transport->quiet(0);
    me.barrier();
  });
}

TEST_P(Conformance, SignalArrivesAfterItsPayload) {
  run(2, [](TransportPe& me) {
    std::vector<std::byte> data((1 << 20) + 7);
    std::uint64_t signal = 0;
    for (const SignalOp op : {SignalOp::set, SignalOp::add})
      for (const bool blocking : {true, false})
        for (const std::size_t size_bytes : payload_sizes())
          for (int time = 0; time < (size_bytes > 100000 ? 3 : 12); ++time) {
            ++signal;
            const auto seed = static_cast<unsigned>(signal);
            if (me.pe == 0) {
              fill(data.data(), size_bytes, seed);
              me.transport->put_signal(0, heap_of(1, data_offset + 1), data.data(), size_bytes,
                                       heap_of(1, flag_offset), op == SignalOp::set ? signal : 1,
                                       op, blocking);
              if (blocking)
                std::memset(data.data(), 0x22, size_bytes);
              await_acknowledgement(me, 1, signal);
              me.transport->quiet(0);
            } else {
              wait_word(me, flag_offset, signal, "signal");
              ASSERT_EQ(first_difference(me.heap + data_offset + 1, size_bytes, seed), size_bytes)
                  << "of " << size_bytes << " bytes";
              acknowledge(me, 0, signal);
            }
          }
    me.barrier();
  });
}

/// Signals of several senders add up, and none arrives before its own payload.
TEST_P(Conformance, SignalsOfSeveralSendersAddUp) {
  static constexpr std::size_t slot_bytes = 5000;
  constexpr std::uint64_t rounds = 60;
  run(4, [](TransportPe& me) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const auto seed = static_cast<unsigned>(round) * 4;
      if (me.pe == 1) {
        wait_word(me, flag_offset, 3 * round, "signals");
        for (unsigned pe : {0u, 2u, 3u})
          ASSERT_EQ(
              first_difference(me.heap + data_offset + pe * slot_bytes, slot_bytes, seed + pe),
              slot_bytes)
              << "of PE " << pe << ", round " << round;
        for (const int pe : {0, 2, 3})
          acknowledge(me, pe, round);
      } else {
        std::vector<std::byte> data(slot_bytes);
        const auto mine = static_cast<std::size_t>(me.pe);
        fill(data.data(), slot_bytes, seed + static_cast<unsigned>(me.pe));
        me.transport->put_signal(0, heap_of(1, data_offset + mine * slot_bytes), data.data(),
                                 slot_bytes, heap_of(1, flag_offset), 1, SignalOp::add, true);
        await_acknowledgement(me, 1, round);
      }
    }
    me.transport->quiet(0);
    me.barrier();
  });
}

/// Many puts with signals in succession, without a wait: each signal counts.
TEST_P(Conformance, SignalsInFlightAreAllCounted) {
  constexpr std::uint64_t times = 2000;
  run(3, [](TransportPe& me) {
    if (me.pe != 0) {
      std::vector<std::uint64_t> data(times, 1);
      const std::size_t at = data_offset + static_cast<std::size_t>(me.pe) * times * 8;
      for (std::size_t i = 0; i < times; ++i)
        me.transport->put_signal(0, heap_of(0, at + i * 8), &data[i], 8, heap_of(0, flag_offset), 1,
                                 SignalOp::add, false);
      me.transport->quiet(0);
    } else {
      wait_word(me, flag_offset, 2 * times, "signals");
      for (std::size_t i = times; i < 3 * times; ++i)
        ASSERT_EQ(word_at(me, data_offset + i * 8), 1u);
    }
    me.barrier();
  });
}

/// A word that is put is seen whole: the old value or the new one, under heavy traffic, too.
template <class Word>
void expect_whole_words(TransportPe& me) {
  constexpr std::size_t words = 512, stride = 24;
  const std::size_t end_offset = 512 + sizeof(Word) * 8;
  const auto place = [](std::size_t i) { return data_offset + i * stride; };
  const Word ones = static_cast<Word>(~Word{0});
  if (me.pe == 0) {
    std::vector<std::byte> bulk(3001);
    for (int round = 0; round < 60; ++round) {
      const Word value = round % 2 == 0 ? ones : Word{0};
      for (std::size_t i = 0; i < words; ++i) {
        me.transport->put(0, heap_of(1, place(i)), &value, sizeof value, true);
        if (i % 16 == 0)
          me.transport->put(0, heap_of(1, (1 << 20) + 1), bulk.data(), 1 + i * 5, false);
      }
      me.transport->fence(0);
    }
    me.transport->quiet(0);
    me.transport->atomic(0, heap_of(1, end_offset), {AtomicOp::add, 8, 1});
  } else {
    // Without progress(): data that this thread itself receives could not be seen half received.
    std::uint64_t torn = 0;
    const Deadline deadline = me.deadline();
    while (word_at(me, end_offset) != 1 && !deadline.passed()) {
      for (std::size_t i = 0; i < words; ++i) {
        auto* word = reinterpret_cast<Word*>(me.heap + place(i));
        const Word seen = std::atomic_ref(*word).load(std::memory_order_acquire);
        torn += seen != 0 && seen != ones;
      }
      me.health->check();
    }
    EXPECT_EQ(word_at(me, end_offset), 1u);
    EXPECT_EQ(torn, 0u) << "of " << sizeof(Word) << " bytes";
  }
  me.transport->quiet(0);
  me.barrier();
}

TEST_P(Conformance, WordsAreSeenWhole) {
  run(2, [](TransportPe& me) {
    expect_whole_words<std::uint64_t>(me);
    expect_whole_words<std::uint32_t>(me);
    expect_whole_words<std::uint16_t>(me);
  });
}

/// The target is in a barrier of the bootstrap and does not call the transport.
TEST_P(Conformance, TargetNeedNotCall) {
  run(3, [](TransportPe& me) {
    constexpr std::size_t size_bytes = 200000;
    std::vector<std::byte> data(size_bytes), back(size_bytes);
    fill(data.data(), size_bytes, 3);
    // The PEs are active one after the other; all others wait.
    for (int active = 0; active < me.n_pes; ++active) {
      for (int to = 0; me.pe == active && to < me.n_pes; ++to) {
        Transport& transport = *me.transport;
        transport.put(0, heap_of(to, data_offset), data.data(), size_bytes, false);
        transport.quiet(0);
        transport.get(0, back.data(), heap_of(to, data_offset), size_bytes, true);
        EXPECT_EQ(back, data);
        transport.atomic(0, heap_of(to, 512), {AtomicOp::add, 8, 1});
        transport.post_atomic(0, heap_of(to, 512), {AtomicOp::add, 8, 1});
        transport.put_signal(0, heap_of(to, data_offset), data.data(), 1000,
                             heap_of(to, flag_offset), 1, SignalOp::add, false);
        transport.quiet(0);
      }
      me.barrier();
    }
    EXPECT_EQ(word_at(me, 512), 6u);
    EXPECT_EQ(word_at(me, flag_offset), 3u);
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
