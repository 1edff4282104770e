// The model checker finds its targets: each of these rings has one defect.
#include <gtest/gtest.h>
#include <iostream>

#include "tests/unit/runtime/proxy/ring_model.h"

namespace shmemctl::test {
namespace {

using Shape3 = ModelTraits<3>;
using Right = RightParts<Shape3>;

/// Some state violates a property, with this message.
template <class Parts>
void expect_found(const ModelSetting& setting, const std::string& words) {
  RingMachine<Parts> machine(setting);
  const Exploration found = Explorer(machine).run();
  std::cout << "found after " << found.states << " states, in " << found.trace.size()
            << " steps: " << found.violation << "\n";
  EXPECT_NE(found.violation.find(words), std::string::npos) << found.violation;
  // The same run of the correct ring has no violation, so the defect was found.
  RingMachine<Right> right(setting);
  EXPECT_EQ(Explorer(right).run().violation, "");
}

struct NoFlowControl : Right {
  struct Producer : Right::Producer {
    using Right::Producer::Producer;
    bool has_room(std::uint64_t) const { return true; }
    template <class Wait>
    bool wait_for_room(std::uint64_t, Wait&) {
      return true;
    }
  };
};
TEST(RingMutants, NoFlowControl) {
  expect_found<NoFlowControl>({.scripts = {"ppp"}}, "deadlock");  // waits for what was overwritten
  expect_found<NoFlowControl>({.scripts = {"vvvvv"}}, "mixture"); // with one whose tag is right
}

struct RoomForOneMore : Right {
  struct Producer : Right::Producer {
    using Right::Producer::Producer;
    template <class Wait>
    bool wait_for_room(std::uint64_t sequence, Wait& wait) {
      return Right::Producer::wait_for_room(Shape3::Sequence::plus(sequence, -1ull), wait);
    }
  };
};
TEST(RingMutants, RoomForOneMoreThanThereIs) {
  expect_found<RoomForOneMore>({.scripts = {"ppp"}}, "deadlock");
}

struct TagBeforePayload : Right {
  struct Producer : Right::Producer {
    using Right::Producer::Producer;
    void write(std::uint64_t sequence, const ModelRequest& request) const {
      Right::Producer::write(sequence, {});
      Right::Producer::write(sequence, request);
    }
  };
};
TEST(RingMutants, TagBeforePayload) {
  expect_found<TagBeforePayload>({.scripts = {"p"}}, "nobody made");
}

struct FirstWordOnly : Right {
  struct Consumer : Right::Consumer {
    using Right::Consumer::Consumer;
    bool take(ModelRequest& request) {
      const std::uint64_t* slot = ring_.slots + Shape3::Sequence::slot(position_, 1) * 2;
      std::uint64_t payload[2];
      if (!valid(Atomics::load_acquire(slot), Shape3::Sequence::tag(position_, 1), payload[0]))
        return false;
      payload[1] = Atomics::load_relaxed(slot + 1) >> proxy_tag_shift;
      request = Shape3::decode(payload);
      position_ = Shape3::Sequence::plus(position_, 1);
      return true;
    }
  };
};
TEST(RingMutants, ReaderTrustsTheFirstWord) {
  // The words arrive in any order, so the others may still be those of the previous lap.
  expect_found<FirstWordOnly>({.scripts = {"vvv"}}, "mixture");
}

struct SlowLapShape : ModelTraits<3> {
  struct Sequence : ProxySequence<3, 1> {
    static constexpr std::uint64_t tag(std::uint64_t sequence, unsigned capacity_log2) {
      return ProxySequence<3, 1>::tag(sequence, capacity_log2 + 1);
    }
    static constexpr std::uint64_t tag_before(std::uint64_t, std::uint64_t, unsigned) { return 0; }
  };
};
TEST(RingMutants, WrongLapParity) {
  // Changes its parity only every second lap.
  expect_found<RightParts<SlowLapShape>>({.scripts = {"ppp"}}, "lost, repeated");
}

struct RelaxedShape : Right {
  struct Atomics : Right::Atomics {
    static void store_release(std::uint64_t* word, std::uint64_t value) {
      store_relaxed(word, value);
    }
  };
  using Producer = FifoProducer<Shape3, Atomics>;
};
TEST(RingMutants, RequestIsNotReleased) {
  expect_found<RelaxedShape>({.scripts = {"p"}}, "before its data");
}

struct GivenBackEarly : Right {
  struct Consumer : Right::Consumer {
    using Right::Consumer::Consumer;
    bool take(ModelRequest& request) {
      const std::uint64_t* slot = ring_.slots + Shape3::Sequence::slot(position_, 1) * 2;
      const std::uint64_t tag = Shape3::Sequence::tag(position_, 1);
      std::uint64_t payload = 0;
      if (!valid(Atomics::load_acquire(slot), tag, payload) ||
          !valid(Atomics::load_relaxed(slot + 1), tag, payload))
        return false;
      Atomics::store_release(ring_.completed, Shape3::Sequence::plus(position_, 1));
      return Right::Consumer::take(request);
    }
  };
};
TEST(RingMutants, SlotGivenBackBeforeItIsRead) {
  expect_found<GivenBackEarly>({.scripts = {"ppp"}}, "deadlock");
}

struct NeverIdle : Right {
  struct Consumer : Right::Consumer {
    using Right::Consumer::Consumer;
    std::uint64_t unpublished() const {
      const std::uint64_t count = Right::Consumer::unpublished();
      return count < 3 ? 0 : count;
    }
  };
};
TEST(RingMutants, RoomIsPublishedTooSeldom) {
  expect_found<NeverIdle>({.scripts = {"ppp"}, .limits = {2, 3}}, "deadlock");
}

struct TornReservation : Right {
  struct Atomics : Right::Atomics {
    static std::uint64_t fetch_add_relaxed(std::uint64_t* word, std::uint64_t value) {
      const std::uint64_t old = Right::Atomics::load_relaxed(word);
      return modify(word, [&](std::uint64_t) { return old + value; }), old;
    }
  };
  using Producer = FifoProducer<Shape3, Atomics>;
};
TEST(RingMutants, ReservationInTwoSteps) {
  expect_found<TornReservation>({.scripts = {"p", "p"}}, "mixture");
}

struct QuietIsNothing : Right {
  struct Consumer : Right::Consumer {
    using Right::Consumer::Consumer;
    /// Completes a quiet when it is read, without asking the sink.
    bool take(ModelRequest& request) {
      if (!Right::Consumer::take(request))
        return false;
      if (request.kind == ModelRequest::quiet)
        answer(request.result, request.result_tag, 0, true);
      return true;
    }
  };
};
TEST(RingMutants, QuietIsCompletedWhenRead) {
  expect_found<QuietIsNothing>({.scripts = {"pq"}}, "quiet returned before");
}

struct CloseInTwoSteps : Right {
  struct Consumer : Right::Consumer {
    using Right::Consumer::Consumer;
    std::uint64_t close() const {
      const std::uint64_t end = Atomics::load_relaxed(ring_.issued) >> 1;
      Right::Consumer::close();
      return end & Shape3::Sequence::mask;
    }
  };
};
TEST(RingMutants, CloseInTwoSteps) {
  expect_found<CloseInTwoSteps>({.scripts = {"p"}, .stop_at_any_time = true}, "the stop left");
}

struct OldAnswer : Right {
  struct Producer : Right::Producer {
    using Right::Producer::Producer;
    static std::uint8_t next_tag(std::uint8_t) { return 1; }
  };
};
TEST(RingMutants, AnOldReplyIsTakenForTheNewOne) {
  expect_found<OldAnswer>({.scripts = {"ff"}}, "another request");
}

struct HalfAnAnswer : Right {
  struct Producer : Right::Producer {
    using Right::Producer::Producer;
    template <class Wait>
    Answer wait_for_result(std::uint32_t number, std::uint8_t tag, Wait& wait) const {
      const std::uint64_t* words = ring_.results + number * Shape3::result_words;
      wait.start();
      for (;;) {
        const std::uint64_t high = Atomics::load_acquire(words + 1);
        if ((high & 1) == tag)
          return {Atomics::load_relaxed(words) >> proxy_tag_shift, (high >> 16 & 1) == 0, true};
        wait.pause();
      }
    }
  };
};
TEST(RingMutants, ResultIsReadBeforeItIsComplete) {
  expect_found<HalfAnAnswer>({.scripts = {"f"}}, "another request");
}

struct StopsWhenIdle : Right {
  struct Consumer : Right::Consumer {
    using Right::Consumer::Consumer;
    /// Takes what is visible for everything.
    std::uint64_t close() const {
      Right::Consumer::close();
      return position_;
    }
  };
};
TEST(RingMutants, StopDoesNotDrain) {
  expect_found<StopsWhenIdle>({.scripts = {"pp"}, .stop_at_any_time = true}, "the stop left");
}

} // namespace
} // namespace shmemctl::test
