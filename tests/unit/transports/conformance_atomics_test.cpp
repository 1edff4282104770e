// Atomic operations: every one, in both sizes, from all PEs on the same word at once.
#include <algorithm>
#include <set>

#include "tests/unit/transports/conformance.h"
#include "transports/shm/atomics.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t word_offset = 1024;
constexpr std::uint8_t word_sizes[] = {4, 8};

std::uint64_t mask_of(std::uint8_t size_bytes) {
  return size_bytes == 4 ? 0xffffffffu : ~std::uint64_t{0};
}

/// The word of PE 0, as this PE's own memory.
std::uint64_t own_word(const TransportPe& me, std::uint8_t size_bytes) {
  return execute_atomic(me.heap + word_offset, {AtomicOp::fetch, size_bytes});
}

/// All PEs on the word of PE 0, PE 0 itself included.
struct Shared {
  TransportPe& me;
  std::uint8_t size_bytes;
  RemoteAddress word = heap_of(0, word_offset);

  /// Collective: sets the word and its neighbours.
  void begin(std::uint64_t value) const {
    me.barrier();
    if (me.pe == 0) {
      std::memset(me.heap + word_offset - 16, 0xee, 48);
      std::memcpy(me.heap + word_offset, &value, size_bytes);
    }
    me.barrier();
  }
  std::uint64_t operator()(AtomicOp op, std::uint64_t operand = 0,
                           std::uint64_t expected = 0) const {
    return me.transport->atomic(0, word, {op, size_bytes, operand, expected});
  }
  /// Collective: the final value of the word, on PE 0; `expected` itself on other PEs.
  void expect(std::uint64_t expected, const char* what) const {
    me.transport->quiet(0);
    me.barrier();
    if (me.pe == 0) {
      EXPECT_EQ(own_word(me, size_bytes), expected & mask_of(size_bytes))
          << what << ", " << int{size_bytes} << " bytes";
      EXPECT_TRUE(all_are(me.heap + word_offset - 16, 16, std::byte{0xee})) << what;
      EXPECT_TRUE(all_are(me.heap + word_offset + size_bytes, 16, std::byte{0xee})) << what;
    }
    me.barrier(); // no PE changes the value before PE 0 has read it
  }
};

/// A PE's values, for the others to see, in its own internal region.
std::vector<std::uint64_t> gather(const TransportPe& me, const std::vector<std::uint64_t>& mine) {
  std::string text(reinterpret_cast<const char*>(mine.data()), mine.size() * 8);
  std::vector<std::uint64_t> all;
  for (const std::string& each : allgather_text(*me.bootstrap, text, me.deadline())) {
    std::vector<std::uint64_t> values(each.size() / 8);
    std::memcpy(values.data(), each.data(), each.size());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void for_both_sizes(TransportPe& me, const std::function<void(const Shared&)>& body) {
  for (const std::uint8_t size_bytes : word_sizes)
    body(Shared{me, size_bytes});
}

TEST_P(Conformance, AdditionsOfAllAreAllThere) {
  constexpr std::uint64_t times = 300;
  run(4, [](TransportPe& me) {
    for_both_sizes(me, [&](const Shared& shared) {
      const std::uint64_t first = mask_of(shared.size_bytes) - 500; // wraps on the way
      shared.begin(first);
      std::vector<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < times; ++i)
        seen.push_back((shared(AtomicOp::add, 1) - first) & mask_of(shared.size_bytes));
      shared.expect(first + 4 * times, "fetch and add");
      EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
      const std::vector<std::uint64_t> all = gather(me, seen);
      EXPECT_EQ(std::set<std::uint64_t>(all.begin(), all.end()).size(), 4 * times);
      EXPECT_EQ(*std::max_element(all.begin(), all.end()), 4 * times - 1);
    });
  });
}

TEST_P(Conformance, PostedAdditionsAreThereAfterQuiet) {
  constexpr std::uint64_t times = 3000;
  run(3, [](TransportPe& me) {
    for_both_sizes(me, [&](const Shared& shared) {
      shared.begin(7);
      for (std::uint64_t i = 0; i < times; ++i)
        me.transport->post_atomic(0, shared.word, {AtomicOp::add, shared.size_bytes, i});
      shared.expect(7 + 3 * (times * (times - 1) / 2), "posted add");
    });
  });
}

/// Each value that was put in comes out once, or is the final value.
TEST_P(Conformance, SwapsLoseNothing) {
  run(4, [](TransportPe& me) {
    for_both_sizes(me, [&](const Shared& shared) {
      shared.begin(0);
      std::vector<std::uint64_t> seen;
      for (std::uint64_t i = 1; i <= 200; ++i)
        seen.push_back(shared(AtomicOp::swap, static_cast<std::uint64_t>(me.pe) * 1000 + i));
      me.transport->quiet(0);
      me.barrier();
      if (me.pe == 0)
        seen.push_back(own_word(me, shared.size_bytes));
      const std::vector<std::uint64_t> all = gather(me, seen);
      const std::set<std::uint64_t> once(all.begin(), all.end());
      EXPECT_EQ(all.size(), 801u);
      EXPECT_EQ(once.size(), 801u);
      EXPECT_EQ(*once.begin(), 0u);
    });
  });
}

TEST_P(Conformance, CompareAndSwapLoops) {
  run(4, [](TransportPe& me) {
    for_both_sizes(me, [&](const Shared& shared) {
      shared.begin(5);
      EXPECT_GE(shared(AtomicOp::compare_swap, 1, 4), 5u); // no PE ever writes 4
      for (int i = 0; i < 100; ++i) {
        std::uint64_t expected = shared(AtomicOp::fetch);
        while (true) {
          const std::uint64_t old = shared(AtomicOp::compare_swap, expected + 2, expected);
          if (old == expected)
            break;
          expected = old;
        }
      }
      shared.expect(5 + 4 * 200, "compare and swap");
    });
  });
}

TEST_P(Conformance, BitsOfAll) {
  run(4, [](TransportPe& me) {
    for_both_sizes(me, [&](const Shared& shared) {
      const unsigned width = shared.size_bytes * 2u; // bits that each PE owns
      const std::uint64_t own = ((std::uint64_t{1} << width) - 1) << (width * unsigned(me.pe));
      shared.begin(0);
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(shared(AtomicOp::bit_or, own) & own, 0u);
        EXPECT_EQ(shared(AtomicOp::bit_xor, own) & own, own);
        EXPECT_EQ(shared(AtomicOp::bit_xor, own) & own, 0u);
        EXPECT_EQ(shared(AtomicOp::bit_and, ~own & mask_of(shared.size_bytes)) & own, own);
      }
      shared(AtomicOp::bit_or, own);
      shared.expect(~std::uint64_t{0}, "bits");
      for (int i = 0; i < 51; ++i)
        me.transport->post_atomic(0, shared.word, {AtomicOp::bit_xor, shared.size_bytes, own});
      shared.expect(0, "posted xor");
      me.transport->post_atomic(0, shared.word, {AtomicOp::bit_or, shared.size_bytes, own});
      me.transport->fence(0);
      me.transport->post_atomic(0, shared.word,
                                {AtomicOp::bit_and, shared.size_bytes, ~(own & (own << 1))});
      me.transport->quiet(0);
      me.barrier();
      EXPECT_EQ(shared(AtomicOp::fetch) & own, own & ~(own << 1)) << "posted or, and";
      me.barrier();
    });
  });
}

TEST_P(Conformance, SetAndFetch) {
  run(3, [](TransportPe& me) {
    for (const std::uint8_t size_bytes : word_sizes)
      for (std::uint64_t value : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{0x8123456789}})
        for (int to = 0; to < me.n_pes; ++to) {
          const RemoteAddress own = heap_of(to, word_offset + static_cast<std::size_t>(me.pe) * 64);
          me.transport->atomic(0, own, {AtomicOp::set, size_bytes, value});
          EXPECT_EQ(me.transport->atomic(0, own, {AtomicOp::fetch, size_bytes}),
                    value & mask_of(size_bytes));
          me.transport->post_atomic(0, own, {AtomicOp::set, size_bytes, value + 1});
          me.transport->quiet(0);
          EXPECT_EQ(me.transport->atomic(0, own, {AtomicOp::fetch, size_bytes}),
                    (value + 1) & mask_of(size_bytes));
        }
    me.barrier();
  });
}

/// CPU atomics on the same word, if the transport allows them: the owner adds as long as the others
/// do.
TEST_P(Conformance, AtomicsWorkWithThoseOfTheCpu) {
  constexpr std::uint64_t times = 2000;
  constexpr std::size_t done_offset = 4096;
  run(3, [](TransportPe& me) {
    if (!me.transport->atomics_coherent_with_cpu())
      return;
    for_both_sizes(me, [&](const Shared& shared) {
      const std::size_t done_at = done_offset + shared.size_bytes * 8u;
      shared.begin(0);
      std::uint64_t made = 0;
      if (me.pe == 0) {
        for (; word_at(me, done_at) != 2; ++made) {
          execute_atomic(me.heap + word_offset, {AtomicOp::add, shared.size_bytes, 1});
          if (made % 1024 == 0)
            me.health->check();
        }
      } else {
        for (std::uint64_t i = 0; i < times; ++i)
          if (i % 8 == 0)
            shared(AtomicOp::add, 1);
          else
            me.transport->post_atomic(0, shared.word, {AtomicOp::add, shared.size_bytes, 1});
        me.transport->quiet(0);
        me.transport->atomic(0, heap_of(0, done_at), {AtomicOp::add, 8, 1});
      }
      shared.expect(made + 2 * times, "with the processor's");
    });
  });
}

} // namespace
} // namespace shmemctl::test
