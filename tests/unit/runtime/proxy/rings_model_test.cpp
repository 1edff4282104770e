// Every interleaving of two rings, each with a thread: quiet over both, stop, errors.
#include "tests/unit/runtime/proxy/expect_right.h"
#include "tests/unit/runtime/proxy/model_size.h"

namespace shmemctl::test {
namespace {

/// Numbers that do not wrap in a script of this length.
using Shape = ModelTraits<4>;

ModelSetting two_rings(std::vector<std::string> scripts) {
  return {.scripts = std::move(scripts), .rings = 2, .looks_at_quieted = true};
}

TEST(RingsModel, QuietCompletesBothRings) {
  expect_right<Shape>(two_rings({"pPq"}), 1'000);
  expect_right<Shape>(two_rings({"Vq", "v"}), 10'000);
}

TEST(RingsModel, QuietSkipsRingsWithoutOperations) {
  expect_right<Shape>(two_rings({"vqVqq"}), 1'000);
  expect_right<Shape>(two_rings({"q", "Vq"}), 5'000);
}

TEST(RingsModel, FetchesAndGetsUseTheirOwnRings) {
  expect_right<Shape>(two_rings({"fG", "g"}), 5'000);
}

TEST(RingsModel, AStopAtAnyTimeDrainsBoth) {
  ModelSetting setting = two_rings({"vVq"});
  setting.stop_at_any_time = true;
  expect_right<Shape>(setting, 3'000);
}

TEST(RingsModel, AStopAtAnyTimeWithTwoProducers) {
  ModelSetting setting = two_rings({"q", "V"});
  setting.stop_at_any_time = true;
  expect_right<Shape>(setting, 5'000);
}

TEST(RingsModel, AFailureInOneEndsTheOther) {
  for (const int at : {0, 1}) {
    ModelSetting setting = two_rings({"vVq"});
    setting.sink_fails_at = at;
    expect_right<Shape>(setting, 3'000);
  }
}

/// Ten times as many states.
class LargeRingsModel : public testing::Test {
protected:
  void SetUp() override {
    if (!thorough)
      GTEST_SKIP() << "only in optimised builds without sanitizers: it would take minutes";
  }
};

TEST_F(LargeRingsModel, AQuietBesideAProducerOfBothRings) {
  expect_right<Shape>(two_rings({"Vq", "vV"}), 100'000);
}

TEST_F(LargeRingsModel, AFailureWithTwoProducers) {
  ModelSetting setting = two_rings({"Vq", "f"});
  setting.sink_fails_at = 1;
  expect_right<Shape>(setting, 50'000);
}

/// The checker finds its targets: each of these has one defect.
template <class Parts>
void expect_found(const ModelSetting& setting, const std::string& words) {
  RingMachine<Parts> machine(setting);
  const Exploration found = Explorer(machine).run();
  EXPECT_NE(found.violation.find(words), std::string::npos) << found.violation;
}

using Right = RightParts<Shape>;

struct ReadIsQuiet : Right {
  struct Producer : Right::Producer {
    using Right::Producer::Producer;
    /// Takes requests that were read for complete ones.
    bool is_quiet() const {
      return Atomics::load_relaxed(ring_.issued) == Atomics::load_acquire(ring_.completed) << 1;
    }
  };
};
TEST(RingsMutants, TakenRequestsCountAsComplete) {
  expect_found<ReadIsQuiet>(two_rings({"vq"}), "quiet returned before");
}

struct QuietedEarly : Right {
  struct Consumer : Right::Consumer {
    using Right::Consumer::Consumer;
    bool take(ModelRequest& request) {
      if (!Right::Consumer::take(request))
        return false;
      publish_quiet();
      return true;
    }
  };
};
TEST(RingsMutants, QuietIsSaidBeforeItIs) {
  expect_found<QuietedEarly>(two_rings({"Vq"}), "quiet returned before");
}

struct OneRingOnly : Right {
  struct Producer : Right::Producer {
    using Right::Producer::Producer;
    /// As if a quiet of ring 0 were enough.
    bool is_quiet() const { return ring_.issued != model_first_ring() || Base::is_quiet(); }

  private:
    using Base = Right::Producer;
    static const std::uint64_t* model_first_ring() {
      // after the stop flag and the data of one producer in two rings
      return model_addresses.data() + 1 + 2 * 4;
    }
  };
};
TEST(RingsMutants, QuietOfOneRingOnly) {
  expect_found<OneRingOnly>(two_rings({"vVq"}), "quiet returned before");
}

} // namespace
} // namespace shmemctl::test
