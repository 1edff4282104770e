// Several contexts, several threads, and regions that grow during operations.
#include "tests/unit/transports/conformance.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t part_bytes = std::size_t{256} << 10;

/// What a thread does with its own context; it reads its results through the transport.
void use_context(TransportPe& me, int context) {
  Transport& transport = *me.transport;
  const int to = (me.pe + 1) % me.n_pes;
  const std::size_t base = static_cast<std::size_t>(context) * part_bytes;
  std::vector<std::byte> data(20000), back(20000);
  for (unsigned round = 0; round < 40; ++round) {
    const std::size_t size_bytes = 1 + round * 499 % data.size();
    fill(data.data(), size_bytes, round + static_cast<unsigned>(context));
    transport.put(context, heap_of(to, base + 64 + 1), data.data(), size_bytes, round % 2 == 0);
    transport.quiet(context);
    transport.get(context, back.data(), heap_of(to, base + 64 + 1), size_bytes, round % 3 == 0);
    transport.quiet(context);
    EXPECT_EQ(first_difference(back.data(), size_bytes, round + static_cast<unsigned>(context)),
              size_bytes);
    EXPECT_EQ(transport.atomic(context, heap_of(to, base), {AtomicOp::add, 8, 2}), round * 4);
    transport.post_atomic(context, heap_of(to, base), {AtomicOp::add, 8, 2});
    transport.quiet(context);
    if (round % 8 == 0)
      transport.fence(context);
  }
  // Without a wait between them.
  for (std::size_t i = 0; i < 500; ++i)
    transport.put(context, heap_of(to, base + 65536 + i * 8), data.data() + i * 8, 8, false);
  transport.quiet(context);
  transport.get(context, back.data(), heap_of(to, base + 65536), 4000, true);
  EXPECT_EQ(std::memcmp(back.data(), data.data(), 4000), 0);
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

TEST_P(Conformance, ContextsInThreads) {
  run(2, [](TransportPe& me) {
    in_threads(4, [&](int thread) { use_context(me, thread); });
    me.barrier();
  });
}

TEST_P(Conformance, AllContextNumbers) {
  run(2, [](TransportPe& me) {
    for (int context = 0; context < limits::max_contexts; ++context) {
      const std::uint64_t value = static_cast<std::uint64_t>(context) + 100;
      const std::size_t at = static_cast<std::size_t>(context) * 8;
      me.transport->put(context, heap_of(1 - me.pe, at), &value, sizeof value, true);
      me.transport->quiet(context);
    }
    me.barrier();
    for (std::size_t context = 0; context < limits::max_contexts; ++context)
      EXPECT_EQ(word_at(me, context * 8), context + 100);
    me.barrier();
  });
}

TEST_P(Conformance, OneContextSeesWhatAnotherCompleted) {
  run(3, [](TransportPe& me) {
    std::vector<std::byte> data(30000), back(30000);
    const int to = (me.pe + 1) % me.n_pes;
    for (unsigned round = 0; round < 60; ++round) {
      fill(data.data(), data.size(), round);
      const int writer = static_cast<int>(round % 5), reader = static_cast<int>((round + 2) % 5);
      me.transport->put(writer, heap_of(to, 4097), data.data(), data.size(), false);
      me.transport->quiet(writer);
      me.transport->get(reader, back.data(), heap_of(to, 4097), back.size(), true);
      ASSERT_EQ(first_difference(back.data(), back.size(), round), back.size());
    }
    me.barrier();
  });
}

/// One thread's wait does not keep another one's from ending.
TEST_P(Conformance, ThreadsThatPollAndThreadsThatWait) {
  run(2, [](TransportPe& me) {
    constexpr std::uint64_t rounds = 300;
    constexpr std::size_t mine_at = 0, echo_at = 64;
    in_threads(2, [&](int thread) {
      const std::size_t wait_at = thread == 0 ? echo_at : mine_at;
      const std::size_t write_at = thread == 0 ? mine_at : echo_at;
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (thread == 0) {
          me.transport->put(1, heap_of(1 - me.pe, write_at), &round, 8, true);
          me.transport->quiet(1);
        }
        wait_word(me, wait_at, round, "echo");
        if (thread == 1) {
          me.transport->put(2, heap_of(1 - me.pe, write_at), &round, 8, true);
          me.transport->quiet(2);
        }
      }
    });
    me.barrier();
  });
}

/// The heap grows while a thread of every PE works on the existing part.
TEST_P(Conformance, RegionGrowsUnderWork) {
  TransportWorldOptions wanted = world(2);
  wanted.heap_bytes = std::size_t{6} << 20;
  wanted.first_heap_bytes = std::size_t{1} << 20;
  run(wanted, [](TransportPe& me) {
    constexpr std::size_t large = std::size_t{1} << 20;
    std::atomic<bool> grown{false};
    std::vector<std::byte> data(large), back(large);
    fill(data.data(), large, static_cast<unsigned>(me.pe));
    struct AtEnd {
      std::atomic<bool>& flag;
      ~AtEnd() { flag.store(true); }
    };
    in_threads(2, [&](int thread) {
      if (thread == 1) {
        std::uint64_t rounds = 0;
        for (; !grown.load() || rounds < 50; ++rounds)
          EXPECT_EQ(me.transport->atomic(1, heap_of(1 - me.pe, 0), {AtomicOp::add, 8, 1}), rounds);
        return;
      }
      const AtEnd at_end{grown};
      for (std::size_t size_mib = 2; size_mib <= 6; ++size_mib) {
        const std::size_t size_bytes = size_mib << 20;
        me.publish(region::heap, me.heap, size_bytes);
        me.barrier();
        const std::size_t at = size_bytes - large; // the new part, to its last byte
        me.transport->put(0, heap_of(1 - me.pe, at), data.data(), large, false);
        me.transport->quiet(0);
        me.transport->get(0, back.data(), heap_of(1 - me.pe, at), large, true);
        EXPECT_EQ(first_difference(back.data(), large, static_cast<unsigned>(me.pe)), large);
        // Across the old end.
        me.transport->put(0, heap_of(1 - me.pe, at - 1000), data.data(), 2000, true);
        me.transport->quiet(0);
        me.transport->get(0, back.data(), heap_of(1 - me.pe, at - 1000), 2000, true);
        EXPECT_EQ(first_difference(back.data(), 2000, static_cast<unsigned>(me.pe)), 2000u);
        // New memory as a source too.
        me.barrier();
        me.transport->put(0, heap_of(1 - me.pe, at + large / 2), me.heap + at, large / 2, false);
        me.transport->quiet(0);
        me.transport->get(0, back.data(), heap_of(1 - me.pe, at + large / 2), large / 2, true);
        EXPECT_EQ(std::memcmp(back.data(), me.heap + at, large / 2), 0);
        me.barrier();
      }
    });
    me.barrier();
  });
}

/// Memory is mapped and unmapped as local memory; stale registrations must not be used.
TEST_P(Conformance, LocalMemoryComesAndGoes) {
  run(2, [](TransportPe& me) {
    for (unsigned round = 0; round < 20; ++round) {
      std::vector<std::byte> memory(100000 + round);
      me.transport->add_local(memory.data(), memory.size());
      fill(memory.data(), memory.size(), round);
      me.transport->put(0, heap_of(1 - me.pe, 64), memory.data(), memory.size(), false);
      me.transport->quiet(0);
      std::memset(memory.data(), 0, memory.size());
      me.transport->get(0, memory.data(), heap_of(1 - me.pe, 64), memory.size(), true);
      EXPECT_EQ(first_difference(memory.data(), memory.size(), round), memory.size());
      me.transport->remove_local(memory.data());
      // The memory is no longer known.
      me.transport->put(0, heap_of(1 - me.pe, 1 << 20), memory.data(), memory.size(), true);
      me.transport->quiet(0);
    }
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
