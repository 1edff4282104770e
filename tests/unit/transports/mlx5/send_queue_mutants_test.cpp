// The model checker finds its targets: each of these queues has one defect.
#include <gtest/gtest.h>
#include <iostream>

#include "tests/unit/runtime/proxy/model_size.h"
#include "tests/unit/transports/mlx5/send_queue_model.h"

namespace shmemctl::test {
namespace {

using Right = RightQueue<3, 2>;
using Shape = Right::Shape;
/// With one word for a WQEBB: fewer states.
using Small = RightQueue<3, 1>;
using Base = QueueModelMemory;

/// The production queue on memory with a defect.
template <class BadMemory, class Good = Right>
struct OnMemory {
  using Shape = typename Good::Shape;
  using Memory = BadMemory;
  using Queue = mlx5::SendQueue<Shape, Memory>;
};
/// A queue with its own defect.
template <class BadQueue>
struct WithQueue : Right {
  using Queue = BadQueue;
};

/// Some state violates a property, with this message; with the correct queue none does.
template <class Parts, class Good = Right>
void expect_found(const QueueModelSetting& setting, const std::string& words) {
  QueueMachine<Parts> machine(setting);
  const Exploration found = Explorer(machine).run();
  std::cout << "found after " << found.states << " states, in " << found.trace.size()
            << " steps: " << found.violation << "\n";
  EXPECT_NE(found.violation.find(words), std::string::npos) << found.violation;
  QueueMachine<Good> right(setting);
  EXPECT_EQ(Explorer(right).run().violation, "");
}

const QueueModelWords& words_at(const std::uint64_t* first) {
  return *reinterpret_cast<const QueueModelWords*>(first);
}
/// The model's first words are the shared ones.
bool is_word(const std::uint64_t* word, std::uint64_t QueueModelWords::*member) {
  return word == &(words_at(model_addresses.data()).*member);
}

struct RecordWithoutRelease : Base {
  static void store_record(std::uint64_t* word, std::uint64_t value) { store(word, value); }
};
TEST(Mlx5Mutants, RecordBeforeTheWqes) {
  expect_found<OnMemory<RecordWithoutRelease>>({.scripts = {"pp"}}, "next entry");
}

struct DoorbellWithoutRelease : Base {
  static void store_doorbell(std::uint64_t* word, std::uint64_t value, std::uint32_t) {
    store(word, value);
  }
};
TEST(Mlx5Mutants, DoorbellBeforeTheRecord) {
  expect_found<OnMemory<DoorbellWithoutRelease>>({.scripts = {"p"}}, "deadlock");
}

struct RecordBehindDoorbell : Base {
  static void store_record(std::uint64_t* word, std::uint64_t value) {
    held = word;
    held_value = value;
  }
  static void store_doorbell(std::uint64_t* word, std::uint64_t value, std::uint32_t) {
    store_release(word, value);
    store_release(held, held_value);
  }
  inline static std::uint64_t* held = nullptr;
  inline static std::uint64_t held_value = 0;
};
TEST(Mlx5Mutants, RecordWrittenAfterTheDoorbell) {
  // With one CQE the other record is never written.
  expect_found<OnMemory<RecordBehindDoorbell>>({.scripts = {"p"}, .mode = CqMode::collapsed},
                                               "deadlock");
}

struct TurnWithoutRelease : Base {
  static void pass_turn(std::uint64_t* word, std::uint64_t, std::uint64_t to) { store(word, to); }
};
TEST(Mlx5Mutants, PublishedBeforeTheWqes) {
  expect_found<OnMemory<TurnWithoutRelease, Small>, Small>({.scripts = {"p", "p"}}, "next entry");
}

struct TurnWithoutFence : GpuQueueModelMemory {
  static void wqes_written() {}
};
TEST(Mlx5Mutants, PublishedByKernelsBeforeTheWqes) {
  expect_found<OnMemory<TurnWithoutFence, Small>, Small>({.scripts = {"p", "p"}}, "next entry");
}

struct NoDoorbellLock : Base {
  static std::uint64_t load(const std::uint64_t* word) {
    const std::uint64_t value = Base::load(word);
    return is_word(word, &QueueModelWords::rung) ? value & ~std::uint64_t{1} : value;
  }
  static bool compare_exchange_acquire(std::uint64_t* word, std::uint64_t, std::uint64_t desired) {
    Base::exchange_acquire(word, desired);
    return true;
  }
};
TEST(Mlx5Mutants, TwoRingAtOnce) {
  expect_found<OnMemory<NoDoorbellLock, Small>, Small>({.scripts = {"p", "p"}}, "");
}

struct BellWithoutRelease : Base {
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    if (is_word(word, &QueueModelWords::rung))
      store(word, value);
    else
      Base::store_release(word, value);
  }
};
TEST(Mlx5Mutants, AnOlderDoorbellAfterANewerOne) {
  expect_found<OnMemory<BellWithoutRelease, Small>, Small>({.scripts = {"p", "p"}},
                                                           "further ahead");
}

struct OutOfOrder : Right::Queue {
  using Right::Queue::SendQueue;
  PublishResult try_publish(std::uint64_t first, std::uint32_t wqebbs, const Signalled&,
                            DoorbellMode) const {
    Base::store_record(view().send_record, Shape::send_record(first + wqebbs));
    Base::store_doorbell(view().doorbell, Shape::doorbell(view(), first + wqebbs), 0);
    return PublishResult::done;
  }
};
TEST(Mlx5Mutants, NoTurns) {
  expect_found<WithQueue<OutOfOrder>>({.scripts = {"p", "p"}}, "next entry");
}

struct NoFlowControl : Right::Queue {
  using Right::Queue::SendQueue;
  bool has_room(std::uint64_t, std::uint64_t) const { return true; }
};
TEST(Mlx5Mutants, NoFlowControl) {
  expect_found<WithQueue<NoFlowControl>>({.scripts = {"ppp"}}, "next entry");
}

struct RoomForOneMore : Right::Queue {
  using Right::Queue::SendQueue;
  bool has_room(std::uint64_t end, std::uint64_t known) const {
    return Right::Queue::has_room(end - 1, known);
  }
};
TEST(Mlx5Mutants, RoomForOneMoreThanThereIs) {
  expect_found<WithQueue<RoomForOneMore>>({.scripts = {"ppp"}}, "next entry");
}

struct NoDoorbellDue : Base {
  static void pass_turn(std::uint64_t* word, std::uint64_t from, std::uint64_t to) {
    Base::pass_turn(word, from, to & ~std::uint64_t{1});
  }
};
TEST(Mlx5Mutants, TheDoorbellIsLeftToAThreadThatDoesNotRing) {
  expect_found<OnMemory<NoDoorbellDue>>({.scripts = {"p", "l"}}, "deadlock");
}

struct ForgottenDoorbell : Base {
  static std::uint64_t load(const std::uint64_t* word) {
    const std::uint64_t value = Base::load(word);
    return is_word(word, &QueueModelWords::reserved) ? value + 1 : value;
  }
};
TEST(Mlx5Mutants, NoProducerIsTheLast) {
  expect_found<OnMemory<ForgottenDoorbell>>({.scripts = {"p"}}, "deadlock");
}

/// Behind the shared words and the other record.
std::uint64_t* completions_record() {
  return model_addresses.data() + sizeof(QueueModelWords) / 8 + 1;
}
struct LateTake : Base {
  static void store_record(std::uint64_t* word, std::uint64_t value) {
    if (word == completions_record())
      held = value;
    else
      Base::store_record(word, value);
  }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    Base::store_release(word, value);
    if (is_word(word, &QueueModelWords::completed))
      Base::store_release(completions_record(), held);
  }
  inline static std::uint64_t held = 0;
};
TEST(Mlx5Mutants, CqesAreFreedAfterTheRoom) {
  expect_found<OnMemory<LateTake, Small>, Small>({.scripts = {"bp", "q"}}, "overran");
}

struct NoPollLock : Base {
  static std::uint64_t exchange_acquire(std::uint64_t* word, std::uint64_t value) {
    Base::exchange_acquire(word, value);
    return 0;
  }
};
TEST(Mlx5Mutants, TwoPollAtOnce) {
  if (!thorough)
    GTEST_SKIP() << "only in optimised builds without sanitizers: it would take minutes";
  expect_found<OnMemory<NoPollLock, Small>, Small>({.scripts = {"r", "r"}}, "deadlock");
}

struct EarlyQuiet : Right::Queue {
  using Right::Queue::SendQueue;
  Target target() const {
    Target target = Right::Queue::target();
    target.needs_nop = false;
    return target;
  }
};
TEST(Mlx5Mutants, QuietWaitsForTheLastCompletionOnly) {
  expect_found<WithQueue<EarlyQuiet>>({.scripts = {"lq"}, .signal_log2 = 1}, "quiet returned");
}

struct UnrungQuiet : Right::Queue {
  using Right::Queue::SendQueue;
  bool try_flush() const { return true; }
};
TEST(Mlx5Mutants, QuietDoesNotRing) {
  expect_found<WithQueue<UnrungQuiet>>({.scripts = {"lq"}}, "deadlock");
}

struct NoCompletions : Right::Queue {
  using Right::Queue::SendQueue;
  bool completes(std::uint64_t, std::uint32_t) const { return false; }
};
TEST(Mlx5Mutants, NothingCompletes) {
  expect_found<WithQueue<NoCompletions>>({.scripts = {"ppp"}}, "deadlock");
}

/// Reads how far it is after the completion.
struct LateBase : Small::Queue {
  using Small::Queue::SendQueue;
  void poll() const {
    const CqeTail tail = Shape::tail(Base::load_acquire(view().completions));
    if (is_unwritten(tail))
      return;
    const std::uint64_t known = completed();
    Base::fetch_max_release(&view().words->completed,
                            known + ((tail.index + 1 - known) & Shape::mask));
  }
};
struct WithLateBase : Small {
  using Queue = LateBase;
};
TEST(Mlx5Mutants, AnIndexOfAnEarlierLap) {
  if (!thorough)
    GTEST_SKIP() << "only in optimised builds without sanitizers: it would take minutes";
  expect_found<WithLateBase, Small>({.scripts = {"pp", "r"}, .mode = CqMode::collapsed},
                                    "deadlock");
}

} // namespace
} // namespace shmemctl::test
