// Puts and gets: sizes, unaligned addresses, kinds of local memory, many at once.
#include <array>
#include <memory>

#include "tests/unit/transports/conformance.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t largest = (1 << 20) + 7;
constexpr std::size_t guard_bytes = 64;
constexpr std::byte untouched{0xee};
/// Offsets in the heap of 4 MiB; odd, so that nothing is aligned by chance.
constexpr std::size_t target_offset = 4096 + 3;
constexpr std::size_t source_offset = (2 << 20) + 129;

/// Local memory of each kind that a program may use.
class LocalMemory {
public:
  explicit LocalMemory(TransportPe& me) : me_(me), registered_(largest + 256) {
    me_.transport->add_local(registered_.data(), registered_.size());
  }
  ~LocalMemory() { me_.transport->remove_local(registered_.data()); }
  LocalMemory(const LocalMemory&) = delete;
  LocalMemory& operator=(const LocalMemory&) = delete;

  /// Calls `use` with memory of `largest` bytes of each kind.
  void each(const std::function<void(const char* kind, std::byte* memory)>& use) {
    use("heap", me_.heap + source_offset);
    use("registered", registered_.data() + 13);
    const std::vector<std::byte>::size_type size_bytes = largest + 1;
    std::vector<std::byte> plain(size_bytes);
    use("unregistered", plain.data() + 1);
    std::array<std::byte, largest + 5> stack;
    use("stack", stack.data() + 5);
  }

private:
  TransportPe& me_;
  std::vector<std::byte> registered_;
};

std::string what(const char* kind, std::size_t size_bytes, bool blocking) {
  return std::to_string(size_bytes) + " bytes, " + kind + (blocking ? ", blocking" : "");
}

/// The pattern, and the previous content around it.
void expect_only(const std::byte* at, std::size_t size_bytes, unsigned seed,
                 const std::string& which) {
  EXPECT_EQ(first_difference(at, size_bytes, seed), size_bytes) << which;
  EXPECT_TRUE(all_are(at - guard_bytes, guard_bytes, untouched)) << "before " << which;
  EXPECT_TRUE(all_are(at + size_bytes, guard_bytes, untouched)) << "behind " << which;
}

TEST_P(Conformance, PutsOfAllSizesAndKinds) {
  run(2, [](TransportPe& me) {
    LocalMemory local(me);
    const int to = (me.pe + 1) % me.n_pes, from = (me.pe + me.n_pes - 1) % me.n_pes;
    unsigned round = 0;
    local.each([&](const char* kind, std::byte* source) {
      for (const bool blocking : {true, false})
        for (const std::size_t size_bytes : payload_sizes()) {
          round += 8;
          std::byte* target = me.heap + target_offset;
          std::memset(target - guard_bytes, static_cast<int>(untouched),
                      size_bytes + 2 * guard_bytes);
          fill(source, size_bytes, round + static_cast<unsigned>(me.pe));
          me.barrier();
          me.transport->put(0, heap_of(to, target_offset), source, size_bytes, blocking);
          if (blocking) // the source may be reused
            std::memset(source, 0x11, size_bytes);
          me.transport->quiet(0);
          me.barrier();
          expect_only(target, size_bytes, round + static_cast<unsigned>(from),
                      what(kind, size_bytes, blocking));
          me.barrier();
        }
    });
  });
}

TEST_P(Conformance, GetsOfAllSizesAndKinds) {
  run(3, [](TransportPe& me) {
    LocalMemory local(me);
    const int from = (me.pe + 1) % me.n_pes;
    fill(me.heap + target_offset, largest, static_cast<unsigned>(me.pe));
    me.barrier();
    local.each([&](const char* kind, std::byte* memory) {
      std::byte* const target = memory + guard_bytes;
      for (const bool blocking : {true, false})
        for (const std::size_t whole : payload_sizes()) {
          const std::size_t size_bytes = std::min(whole, largest - 2 * guard_bytes);
          std::memset(memory, static_cast<int>(untouched), size_bytes + 2 * guard_bytes);
          me.transport->get(0, target, heap_of(from, target_offset), size_bytes, blocking);
          if (!blocking)
            me.transport->quiet(0);
          expect_only(target, size_bytes, static_cast<unsigned>(from),
                      what(kind, size_bytes, blocking));
        }
    });
    me.barrier();
  });
}

TEST_P(Conformance, ToItself) {
  run(2, [](TransportPe& me) {
    std::vector<std::byte> source(70000), back(70000);
    fill(source.data(), source.size(), 5);
    me.transport->put(0, heap_of(me.pe, target_offset), source.data(), source.size(), false);
    me.transport->quiet(0);
    EXPECT_EQ(first_difference(me.heap + target_offset, source.size(), 5), source.size());
    me.transport->get(0, back.data(), heap_of(me.pe, target_offset), back.size(), true);
    EXPECT_EQ(first_difference(back.data(), back.size(), 5), back.size());
    me.barrier();
  });
}

TEST_P(Conformance, BothRegions) {
  run(2, [](TransportPe& me) {
    const auto value = static_cast<std::uint64_t>(me.pe) + 17, theirs = 35 - value;
    me.transport->put(0, {1 - me.pe, region::internal, 128}, &value, sizeof value, true);
    me.transport->put(0, heap_of(1 - me.pe, 256), &value, sizeof value, true);
    me.transport->quiet(0);
    me.barrier();
    EXPECT_EQ(std::memcmp(me.internal + 128, &theirs, sizeof theirs), 0);
    EXPECT_EQ(std::memcmp(me.heap + 256, &theirs, sizeof theirs), 0);
    EXPECT_TRUE(all_are(me.heap + 128, 8, std::byte{0}));
    EXPECT_TRUE(all_are(me.internal + 256, 8, std::byte{0}));
    std::uint64_t seen = 0;
    me.transport->get(0, &seen, {1 - me.pe, region::internal, 128}, sizeof seen, true);
    EXPECT_EQ(seen, value);
    me.barrier();
  });
}

/// More than any queue, pool or window holds.
TEST_P(Conformance, ThousandsInFlight) {
  constexpr std::size_t words = 6000, blocks = 400, block_bytes = 2048;
  run(3, [](TransportPe& me) {
    const auto mine = static_cast<std::size_t>(me.pe);
    std::vector<std::uint64_t> values(words);
    std::vector<std::byte> block(blocks * block_bytes);
    fill(block.data(), block.size(), static_cast<unsigned>(me.pe));
    for (std::size_t i = 0; i < words; ++i)
      values[i] = mine * words + i + 1;
    const std::size_t words_at = mine * words * 8, blocks_at = (1 << 20) + mine * block.size();
    for (std::size_t i = 0; i < words; ++i)
      for (int to = 0; to < me.n_pes; ++to)
        me.transport->put(0, heap_of(to, words_at + i * 8), &values[i], 8, i % 3 == 0);
    for (std::size_t i = 0; i < blocks; ++i)
      for (int to = 0; to < me.n_pes; ++to)
        me.transport->put(0, heap_of(to, blocks_at + i * block_bytes),
                          block.data() + i * block_bytes, block_bytes, false);
    me.transport->quiet(0);
    me.barrier();
    for (std::size_t pe = 0; pe < 3; ++pe) {
      for (std::size_t i = 0; i < words; ++i)
        ASSERT_EQ(word_at(me, (pe * words + i) * 8), pe * words + i + 1) << "from PE " << pe;
      const std::byte* from = me.heap + (1 << 20) + pe * block.size();
      EXPECT_EQ(first_difference(from, block.size(), static_cast<unsigned>(pe)), block.size());
    }
    std::vector<std::uint64_t> back(words);
    for (std::size_t i = 0; i < words; ++i)
      me.transport->get(0, &back[i], heap_of((me.pe + 1) % 3, words_at + i * 8), 8, false);
    me.transport->quiet(0);
    EXPECT_EQ(back, values);
    me.barrier();
  });
}

TEST_P(Conformance, BothDirectionsAtOnce) {
  static constexpr std::size_t size_bytes = 300001, times = 24;
  run(2, [](TransportPe& me) {
    std::vector<std::byte> source(size_bytes), back(size_bytes);
    for (unsigned round = 0; round < times; ++round) {
      fill(source.data(), size_bytes, round + static_cast<unsigned>(me.pe));
      const std::size_t at = target_offset + (round % 4) * (size_bytes + 11);
      me.transport->put(0, heap_of(1 - me.pe, at), source.data(), size_bytes, false);
      me.transport->quiet(0);
      me.transport->get(0, back.data(), heap_of(1 - me.pe, at), size_bytes, false);
      me.transport->quiet(0);
      ASSERT_EQ(first_difference(back.data(), size_bytes, round + static_cast<unsigned>(me.pe)),
                size_bytes);
    }
    me.barrier();
  });
}

TEST_P(Conformance, QuietWithNothingToDo) {
  run(2, [](TransportPe& me) {
    for (int context = 0; context < 4; ++context) {
      me.transport->fence(context);
      me.transport->quiet(context);
    }
    me.transport->progress();
    me.barrier();
  });
}

/// The transport's own statistics after a run.
TEST_P(Conformance, TellsWhatItMoved) {
  run(2, [](TransportPe& me) {
    std::vector<std::byte> data(50000);
    const int peer = 1 - me.pe;
    me.transport->put(0, heap_of(peer, 0), data.data(), data.size(), false);
    me.transport->quiet(0);
    me.transport->get(0, data.data(), heap_of(peer, 0), 1000, true);
    std::uint64_t put_bytes = 0, get_bytes = 0;
    const std::vector<NicTraffic> traffic = me.transport->traffic();
    for (const NicTraffic& nic : traffic) {
      EXPECT_FALSE(nic.nic.device.empty());
      put_bytes += nic.put_bytes;
      get_bytes += nic.get_bytes;
    }
    if (!traffic.empty()) {
      EXPECT_EQ(put_bytes, data.size());
      EXPECT_EQ(get_bytes, 1000u);
      EXPECT_NE(me.transport->connection(peer), "");
    }
    for (const NicPair& nics : me.transport->nics_to(peer))
      EXPECT_FALSE(nics.local.device.empty());
    EXPECT_TRUE(me.transport->nics_to(me.pe).empty());
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
