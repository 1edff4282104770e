// Memory-order litmus tests on two PEs: outcomes that OpenSHMEM forbids must never occur. Each runs
// for a fixed number of rounds, or for SHMEMCTL_LITMUS_SECONDS.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/unit/runtime/shapes.h"

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

constexpr std::size_t n_slots = 256; ///< instances of a test that run without a pause between them
constexpr std::size_t slot_bytes = 512;
constexpr int rounds = 300;

double soak_s() {
  const char* text = std::getenv("SHMEMCTL_LITMUS_SECONDS");
  return text ? std::atof(text) : 0;
}

/// Brings two threads so close together that their next accesses overlap. Test machinery, not part
/// of what is tested.
class Aligner {
public:
  void meet(int pe, std::uint64_t turn) {
    come_[pe].value.store(turn, std::memory_order_seq_cst);
    for (int spins = 0; come_[1 - pe].value.load(std::memory_order_seq_cst) < turn; ++spins)
      if (spins > 1000)
        std::this_thread::yield();
  }

private:
  struct alignas(64) Cell {
    std::atomic<std::uint64_t> value{0};
  };
  Cell come_[2];
};

/// Words of one instance; on lines of their own.
struct Slot {
  std::uint64_t *x, *y, *seen_first, *seen_second;
  std::byte* data;
  std::size_t number;
};

/// One PE's part; `round` is never 0, so a word that holds it has been written in this round.
using Part = std::function<void(TeamPe&, const Slot&, std::uint64_t round)>;
/// Checks for forbidden outcomes, after both parts, which run at the same time.
using Check = std::function<void(TeamPe&, const Slot&, std::uint64_t round)>;

void run(const Part& first, const Part& second, const Check& check = {}) {
  Aligner aligner;
  TeamWorldOptions options;
  options.heap_bytes = n_slots * slot_bytes;
  const double seconds = soak_s();
  run_team_world(
      2,
      [&](TeamPe& me) {
        const Deadline end = Deadline::after(std::chrono::duration<double>(seconds));
        const auto slot = [&](std::size_t i) {
          std::byte* at = me.heap + i * slot_bytes;
          const auto word = [&](std::size_t line) {
            return reinterpret_cast<std::uint64_t*>(at + line * 64);
          };
          return Slot{word(0), word(1), word(2), word(3), at + 256, i};
        };
        std::uint64_t more = 1;
        for (std::uint64_t round = 1; more != 0; ++round) {
          for (std::size_t i = 0; i < n_slots; ++i) {
            if (check)
              aligner.meet(me.pe, round * n_slots + i);
            (me.pe == 0 ? first : second)(me, slot(i), round);
          }
          me.rma->quiet(); // sync() does not complete puts, and check() reads their data
          me.teams->sync(team_world);
          for (std::size_t i = 0; i < n_slots && check; ++i)
            check(me, slot(i), round);
          // PE 0 decides when it is over.
          more = round < rounds || !end.passed() ? 1 : 0;
          const std::uint64_t own = more;
          *me.at<std::uint64_t>(504) = own;
          me.collectives->broadcast(team_world, me.at<std::uint64_t>(504),
                                    me.at<std::uint64_t>(504), sizeof own, 0);
          more = *me.at<std::uint64_t>(504);
        }
      },
      options);
}

std::uint64_t fetch(TeamPe& me, std::uint64_t* word, int pe) {
  return me.rma->atomic(word, {AtomicOp::fetch, 8, 0, 0}, pe);
}

void set(TeamPe& me, std::uint64_t* word, std::uint64_t value, int pe) {
  me.rma->atomic(word, {AtomicOp::set, 8, value, 0}, pe);
}

/// The reader of message passing: after the flag, the data.
void read_message(TeamPe& me, const Slot& slot, std::uint64_t round) {
  me.rma->wait_until(slot.y, Compare::equal, round, "litmus", 0);
  for (std::size_t i = 0; i < 200; ++i)
    require(slot.data[i] == pattern(0, i, round + slot.number), "data is older than its flag");
}

std::vector<std::byte> message(const Slot& slot, std::uint64_t round) {
  std::vector<std::byte> bytes(200);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = pattern(0, i, round + slot.number);
  return bytes;
}

} // namespace

TEST(Litmus, MessagePassingPutFencePut) {
  run(
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        const auto bytes = message(slot, round);
        me.rma->put(slot.data, bytes.data(), bytes.size(), 1);
        me.rma->fence();
        me.rma->put(slot.y, &round, sizeof round, 1);
      },
      read_message);
}

TEST(Litmus, MessagePassingPutQuietAtomic) {
  run(
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        const auto bytes = message(slot, round);
        me.rma->put(slot.data, bytes.data(), bytes.size(), 1, 0, false);
        me.rma->quiet();
        set(me, slot.y, round, 1);
      },
      read_message);
}

TEST(Litmus, MessagePassingPutSignal) {
  run(
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        const auto bytes = message(slot, round);
        if (slot.number % 2 == 0)
          me.rma->put_signal(slot.data, bytes.data(), bytes.size(), slot.y, round, SignalOp::set,
                             1);
        else
          me.rma->put_signal(slot.data, bytes.data(), bytes.size(), slot.y, 1, SignalOp::add, 1);
      },
      read_message);
}

/// The reader gets both words from the writer's memory.
TEST(Litmus, MessagePassingReadFromAfar) {
  run(
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        me.rma->put(slot.x, &round, sizeof round, 0);
        me.rma->fence();
        me.rma->put(slot.y, &round, sizeof round, 0);
      },
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        std::uint64_t flag = 0, data = 0;
        me.rma->get(&flag, slot.y, sizeof flag, 0);
        me.rma->fence();
        me.rma->get(&data, slot.x, sizeof data, 0);
        require(flag != round || data == round, "data is older than its flag");
      });
}

/// Store buffering: each writes its word and then reads the other's; not both may read the old
/// value.
TEST(Litmus, StoreBufferingAtomics) {
  const auto part = [](int own, TeamPe& me, const Slot& slot, std::uint64_t round) {
    std::uint64_t* words[] = {slot.x, slot.y};
    set(me, words[own], round, 0);
    me.rma->quiet();
    std::uint64_t* seen = own == 0 ? slot.seen_first : slot.seen_second;
    const std::uint64_t value = fetch(me, words[1 - own], 0);
    me.rma->put(seen, &value, sizeof value, 0);
  };
  run([&](TeamPe& me, const Slot& slot, std::uint64_t round) { part(0, me, slot, round); },
      [&](TeamPe& me, const Slot& slot, std::uint64_t round) { part(1, me, slot, round); },
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        if (me.pe == 0)
          require(*slot.seen_first == round || *slot.seen_second == round,
                  "both read what was there before both writes");
      });
}

TEST(Litmus, StoreBufferingPutQuietGet) {
  const auto part = [](int own, TeamPe& me, const Slot& slot, std::uint64_t round) {
    std::uint64_t* words[] = {slot.x, slot.y};
    me.rma->put(words[own], &round, sizeof round, 1);
    me.rma->quiet();
    std::uint64_t value = 0;
    me.rma->get(&value, words[1 - own], sizeof value, 1);
    me.rma->put(own == 0 ? slot.seen_first : slot.seen_second, &value, sizeof value, 1);
  };
  run([&](TeamPe& me, const Slot& slot, std::uint64_t round) { part(0, me, slot, round); },
      [&](TeamPe& me, const Slot& slot, std::uint64_t round) { part(1, me, slot, round); },
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        if (me.pe == 1)
          require(*slot.seen_first == round || *slot.seen_second == round,
                  "both read what was there before both writes");
      });
}

/// Load buffering: each reads the other's word and then writes its own; not both may read the new
/// value.
TEST(Litmus, LoadBuffering) {
  const auto part = [](int own, TeamPe& me, const Slot& slot, std::uint64_t round) {
    std::uint64_t* words[] = {slot.x, slot.y};
    const std::uint64_t value = fetch(me, words[1 - own], 0);
    me.rma->fence();
    set(me, words[own], round, 0);
    me.rma->put(own == 0 ? slot.seen_first : slot.seen_second, &value, sizeof value, 0);
  };
  run([&](TeamPe& me, const Slot& slot, std::uint64_t round) { part(0, me, slot, round); },
      [&](TeamPe& me, const Slot& slot, std::uint64_t round) { part(1, me, slot, round); },
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        if (me.pe == 0)
          require(*slot.seen_first != round || *slot.seen_second != round,
                  "both read what was written after both reads");
      });
}

/// A flag that its reader clears must stay clear: the put has stored it exactly once.
TEST(Litmus, APutStoresAWordOnce) {
  run(
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        me.rma->put(slot.y, &round, sizeof round, 1);
        me.rma->quiet();
        set(me, slot.x, round, 1);
      },
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        me.rma->wait_until(slot.y, Compare::equal, round, "litmus", 0);
        set(me, slot.y, 0, 1);
        me.rma->wait_until(slot.x, Compare::equal, round, "litmus", 0); // the put has returned
        require(fetch(me, slot.y, 1) == 0, "the flag was set twice");
      });
}

/// Words are never torn.
TEST(Litmus, WordsDoNotTear) {
  run(
      [](TeamPe& me, const Slot& slot, std::uint64_t round) {
        const std::uint64_t both = round << 32 | round;
        me.rma->put(slot.x, &both, sizeof both, 1);
        me.rma->put(slot.y, &both, sizeof both, 0);
      },
      [](TeamPe& me, const Slot& slot, std::uint64_t) {
        std::uint64_t here = 0, there = 0;
        me.rma->get(&here, slot.x, sizeof here, 1);
        me.rma->get(&there, slot.y, sizeof there, 0);
        require(here >> 32 == (here & 0xffffffff) && there >> 32 == (there & 0xffffffff),
                "half a word");
      });
}
