// The tuner: what it tries, how it chooses, and that a wrong candidate is never chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/instruments/bench/moe/measure.h"
#include "src/instruments/bench/moe/tune.h"
#include "tests/unit/instruments/bench/moe/drive.h"

namespace shmemctl::test {
namespace {

using namespace moe;

Settings some(std::int32_t sms, std::int32_t warps) {
  Settings settings;
  settings.sms = sms;
  settings.warps = warps;
  return settings;
}

Attempt tried(std::int32_t sms, double around_us, double spread_us, bool own_choice = false) {
  Attempt attempt;
  attempt.settings = some(sms, 4);
  attempt.own_choice = own_choice;
  for (int i = -10; i <= 10; ++i)
    attempt.last_us.push_back(around_us + i * spread_us / 10);
  return attempt;
}

Tuned chosen_of(std::vector<Attempt> attempts) {
  Tuned tuned{Direction::dispatch, std::move(attempts)};
  choose(tuned);
  return tuned;
}

TEST(MoeSettings, TextIsReadAgain) {
  Settings all;
  std::int32_t value = 3;
  for (const SettingField& field : setting_fields)
    all.*field.value = value += 7;
  EXPECT_EQ(
      to_text(all),
      "sms=10,warps=17,stages=24,kept=31,self_sms=38,in_place=45,chunk_bytes=52,chunk_rows=59");
  EXPECT_EQ(parse_settings("--x", to_text(all)), all);
  EXPECT_EQ(to_text(parse_settings("--x", "warps=0")), "warps=0");
  EXPECT_EQ(to_text(Settings{}), "");
}

TEST(MoeSettings, WhatIsNoSettingIsRefusedByName) {
  for (const char* text : {"", "sms", "sms=", "sms=x", "sms=-1", "sms=1,", "sms=1=2", "sm=1",
                           "sms=1,sms=2", "sms=99999999"})
    try {
      parse_settings("--dispatch-settings", text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("--dispatch-settings"), std::string::npos);
    }
}

TEST(MoeSettings, GivenOnesWinAndTheRestIsFilled) {
  Settings given;
  given.warps = 2;
  EXPECT_EQ(filled(given, some(8, 4)), some(8, 2));
}

TEST(MoeTune, NoiseIsTwoErrorsOfTheDifferenceOrHalfAPercent) {
  EXPECT_DOUBLE_EQ(noise_of({200, 200, 200}, {300, 300, 300}), 1);
  // 1.4826 * 1.2533 / sqrt(3) each
  EXPECT_NEAR(noise_of({9, 10, 11}, {9, 10, 11}), 2 * 1.0728 * std::sqrt(2.0), 0.001);
}

TEST(MoeTune, FewerMultiprocessorsWinWithinTheNoiseOnly) {
  // 24 are faster by 1 us of 100, but the spread of the times is larger.
  EXPECT_EQ(chosen_of({tried(24, 100, 8, true), tried(16, 101, 8), tried(8, 140, 8)}).chosen, 1U);
  // The same times, with hardly any spread.
  EXPECT_EQ(chosen_of({tried(24, 100, 0.1, true), tried(16, 101, 0.1)}).chosen, 0U);
  // As many: the backend's own choice, although another is slightly faster.
  EXPECT_EQ(chosen_of({tried(24, 100.2, 0.1, true), tried(24, 100, 0.1)}).chosen, 0U);
  // Neither of the fast ones is the backend's own choice: the faster one wins.
  EXPECT_EQ(chosen_of({tried(24, 200, 1, true), tried(24, 101, 1), tried(24, 100.9, 1)}).chosen,
            2U);
}

TEST(MoeTune, WhatIsWrongOrWasNotMeasuredOnIsNotChosen) {
  std::vector<Attempt> attempts{tried(24, 100, 1, true), tried(24, 10, 1), tried(24, 50, 1)};
  attempts[1].wrong = "row 3";
  attempts[2].first_us = std::move(attempts[2].last_us);
  attempts[2].last_us.clear();
  EXPECT_EQ(chosen_of(attempts).chosen, 0U);
  attempts[0].wrong = "row 4";
  EXPECT_EQ(chosen_of(attempts).chosen, 0U);
  EXPECT_FALSE(all_right({chosen_of(attempts)}));
}

/// Takes as long as its settings say: 300 us divided by warps, and one rank slightly longer.
class PretendedBackend : public Backend {
public:
  PretendedBackend(std::int32_t rank, std::int32_t wrong_warps)
      : rank_(rank), wrong_warps_(wrong_warps) {}
  std::string name() const override { return "pretended"; }
  std::vector<MemoryUse> memory() const override { return {}; }
  std::string window() const override { return "none"; }
  void poison() override { ++poisoned; }
  Times dispatch(bool) override { return times(Direction::dispatch); }
  void run_experts() override {}
  Times combine() override { return times(Direction::combine); }
  std::optional<std::string> verify_dispatch() override { return verify(Direction::dispatch); }
  std::optional<std::string> verify_combine() override { return verify(Direction::combine); }
  void corrupt() override {}
  Settings settings(Direction direction) const override {
    return filled(given(direction), some(8, 1));
  }
  std::vector<Settings> candidates(Direction) const override {
    std::vector<Settings> all;
    for (int warps = 1; warps <= 20; ++warps)
      all.push_back(some(8, warps));
    return all;
  }

  int poisoned = 0;
  std::map<std::string, int> calls;

private:
  Times times(Direction direction) {
    const Settings now = settings(direction);
    ++calls[to_string(direction) + (" " + to_text(now))];
    // On rank 1 more than 12 warps are slow: rank 0 alone must not decide.
    const bool is_slow = rank_ == 1 && *now.warps > 12;
    return {300.0 / *now.warps + (is_slow ? 500 : 0), 0, 0, 0, {0, 0}};
  }
  std::optional<std::string> verify(Direction direction) const {
    if (rank_ == 1 && direction == Direction::combine && settings(direction).warps == wrong_warps_)
      return "row 1 is wrong";
    return std::nullopt;
  }

  std::int32_t rank_, wrong_warps_;
};

/// As in tests of the measurement: threads that gather texts.
struct Ranks {
  explicit Ranks(int n) : texts(static_cast<std::size_t>(n)) {}
  std::vector<std::string> texts;

  JobRank of(TeamPe& me) {
    const auto barrier = [&me] { me.collectives->barrier(team_world); };
    JobRank rank;
    rank.pe = me.pe;
    rank.n_pes = me.n_pes;
    rank.barrier = barrier;
    rank.gather = [this, &me, barrier](const std::string& text) {
      texts[static_cast<std::size_t>(me.pe)] = text;
      barrier();
      std::vector<std::string> all = texts;
      barrier();
      return all;
    };
    return rank;
  }
};

TEST(MoeTune, TheSlowestRankDecidesAndAllRanksAgree) {
  Ranks ranks(2);
  std::vector<std::vector<Tuned>> tuned(2);
  run_team_world(2, [&](TeamPe& me) {
    PretendedBackend backend(me.pe, /*wrong_warps=*/12);
    Effort effort;
    effort.iterations = 12;
    std::vector<Tuned>& mine = tuned[static_cast<std::size_t>(me.pe)];
    mine = tune(backend, moe::Setup{}, effort, ranks.of(me));
    ASSERT_EQ(mine.size(), 2U);
    EXPECT_EQ(mine[0].attempts.size(), 20U); // the own choice is one of the candidates
    EXPECT_TRUE(mine[0].attempts[0].own_choice);
    EXPECT_EQ(to_text(mine[0].choice().settings), "sms=8,warps=12");
    // Wrong on rank 1 only, and only in combines.
    EXPECT_EQ(to_text(mine[1].choice().settings), "sms=8,warps=11");
    EXPECT_FALSE(all_right(mine));
    EXPECT_EQ(backend.settings(Direction::dispatch), some(8, 12)); // the best settings are in use
    EXPECT_EQ(backend.settings(Direction::combine), some(8, 11));
    // Each was verified once, the last of each direction twice: the best 8 and the own choice.
    EXPECT_EQ(backend.poisoned, 2 * (20 + 9));
    EXPECT_EQ(backend.calls["combine sms=8,warps=20"], 1 + 3);
    EXPECT_EQ(backend.calls["combine sms=8,warps=11"], 1 + 3 + 12 + 1);
    EXPECT_EQ(backend.calls["combine sms=8,warps=12"], 1 + 3);
  });
  EXPECT_EQ(tuned_json(tuned[0]), tuned_json(tuned[1]));
}

/// Masks rank 1 in its first call of a direction after `at` fills: verification would miss rows in
/// what that one left.
class MaskingTrials : public PretendedBackend {
public:
  MaskingTrials(Direction in, int at) : PretendedBackend(0, -1), in_(in), at_(at) {}
  Times dispatch(bool cached) override {
    mask(Direction::dispatch);
    return PretendedBackend::dispatch(cached);
  }
  Times combine() override {
    mask(Direction::combine);
    return PretendedBackend::combine();
  }
  std::vector<std::int32_t> masked() override {
    return masked_in_ > 0 ? std::vector<std::int32_t>{1} : std::vector<std::int32_t>{};
  }
  std::optional<std::string> verify_dispatch() override {
    return masked_in_ == poisoned ? std::optional<std::string>("no rows of rank 1") : std::nullopt;
  }
  std::optional<std::string> verify_combine() override { return verify_dispatch(); }

private:
  void mask(Direction direction) {
    if (masked_in_ == 0 && direction == in_ && poisoned == at_)
      masked_in_ = poisoned;
  }
  Direction in_;
  int at_, masked_in_ = 0;
};

JobRank alone() {
  JobRank rank;
  rank.barrier = [] {};
  rank.gather = [](const std::string& text) { return std::vector{text}; };
  return rank;
}

/// In a first attempt of each direction, and in a last one: each direction fills 20 times, then 9.
TEST(MoeTune, WhatTheCallThatMasksLeavesIsNoCorruption) {
  for (const auto& [in, at] : {std::pair{Direction::dispatch, 1},
                               {Direction::dispatch, 21},
                               {Direction::combine, 30},
                               {Direction::combine, 50}}) {
    MaskingTrials backend(in, at);
    Effort effort;
    effort.iterations = 2;
    EXPECT_TRUE(all_right(tune(backend, moe::Setup{}, effort, alone()))) << at;
    EXPECT_EQ(backend.masked().size(), 1U) << at;
  }
}

/// One variant, and each call takes time.
class SlowTrials : public PretendedBackend {
public:
  SlowTrials() : PretendedBackend(0, -1) {}
  Times dispatch(bool cached) override { return take(), PretendedBackend::dispatch(cached); }
  Times combine() override { return take(), PretendedBackend::combine(); }
  std::vector<Settings> candidates(Direction) const override { return {some(8, 1)}; }

  static constexpr std::chrono::milliseconds call_ms{50};
  int since_step = 0, max_since_step = 0;

private:
  void take() {
    std::this_thread::sleep_for(call_ms);
    max_since_step = std::max(max_since_step, ++since_step);
  }
};

/// Neither the first calls of an attempt nor the last ones in turn are taken for a hang.
TEST(MoeTune, ALostPeIsLeftOut) {
  PretendedBackend backend(0, -1);
  Effort effort;
  effort.iterations = 4;
  JobRank rank = alone();
  rank.n_pes = 3;
  rank.gather = [](const std::string& text) { return std::vector<std::string>{text, "", text}; };
  const std::vector<Tuned> tuned = tune(backend, moe::Setup{}, effort, rank);
  ASSERT_EQ(tuned.size(), 2U);
  EXPECT_EQ(to_text(tuned[0].choice().settings), "sms=8,warps=20");
  EXPECT_TRUE(all_right(tuned));
}

TEST(MoeTune, ProgressIsPrinted) {
  SlowTrials backend;
  Effort effort;
  effort.iterations = 32; // so 8 of each attempt at first
  std::vector<std::string> said;
  JobRank rank = alone();
  rank.step = [&](const std::string& words) {
    backend.since_step = 0;
    said.push_back(words);
  };
  tune(backend, moe::Setup{}, effort, rank);
  const auto calls = static_cast<int>(Progress::pause / SlowTrials::call_ms) + 1;
  EXPECT_LE(backend.max_since_step, calls + 1);
  for (const char* words :
       {"tuning: the plan", "tuning dispatch: 1 of 1 settings", "tuning combine: 1 of 1 settings",
        "tuning combine: the best 1, call 1 of 32"})
    EXPECT_NE(std::find(said.begin(), said.end(), words), said.end()) << words;
}

TEST(MoeTune, TextNamesTheChoiceAndTheOptionsThatRepeatIt) {
  Tuned one = chosen_of({tried(24, 100, 1, true), tried(16, 80, 1)});
  one.attempts.push_back(tried(12, 70, 1));
  one.attempts.back().wrong = "row 7";
  const std::string text = tuned_text({one}, {});
  EXPECT_NE(text.find("3 settings tried"), std::string::npos) << text;
  EXPECT_NE(text.find("chosen"), std::string::npos) << text;
  EXPECT_NE(text.find("wrong data"), std::string::npos) << text;
  EXPECT_NE(text.find("best by SMs: 16: 80.0 us, 24: 100.0 us"), std::string::npos) << text;
  EXPECT_NE(text.find("--dispatch-settings sms=16,warps=4"), std::string::npos) << text;
  EXPECT_NE(tuned_text({}, {}).find("no settings"), std::string::npos);
}

/// The host backend's own candidates, each verified, in every mode.
TEST(MoeTune, HostTriesItsChunksVerified) {
  for (const MoeDrive& drive :
       {moe_drive(3, 12, 3, 1024, 20), low_latency(moe_drive(2, 8, 2, 1024, 9), Combine::weighted),
        low_latency(moe_drive(2, 8, 2, 1024, 9), Combine::partial)}) {
    MoeDrive mine = drive;
    const Routing routing = make_routing(mine.setup.shape, mine.routing);
    mine.setup.routing = &routing;
    Ranks ranks(mine.setup.shape.n_ranks);
    TeamWorldOptions options;
    options.heap_bytes = host_backend_bytes(mine.setup) / 4096 * 4096 + 8192;
    run_team_world(
        mine.setup.shape.n_ranks,
        [&](TeamPe& me) {
          const auto backend = make_host_backend(*me.rma, me.heap, mine.setup);
          me.collectives->barrier(team_world);
          Effort effort;
          effort.iterations = 4;
          const JobRank rank = ranks.of(me);
          const std::vector<Tuned> tuned = tune(*backend, mine.setup, effort, rank);
          EXPECT_TRUE(all_right(tuned)) << tuned_text(tuned, {});
          ASSERT_EQ(tuned.size(), 2U);
          for (const Tuned& one : tuned) {
            ASSERT_EQ(one.attempts.size(), 4U); // the whole row, a half, a quarter, an eighth
            EXPECT_EQ(one.attempts[0].settings, backend->candidates(one.direction)[0]);
            EXPECT_FALSE(one.choice().last_us.empty());
            EXPECT_EQ(backend->settings(one.direction), one.choice().settings);
          }
          me.collectives->barrier(team_world);
        },
        options);
  }
}

TEST(MoeTune, HostPutsRowsInChunksOfWhatIsSet) {
  MoeDrive drive = moe_drive(2, 2, 2, 512, 3); // each token goes to both ranks
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  std::atomic<int> delivered{0};
  TeamWorldOptions options;
  options.pes_per_node = 1;
  options.heap_bytes = host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
  options.between_deliveries = [&](int pe) { delivered += pe == 0 ? 1 : 0; };
  run_team_world(
      2,
      [&](TeamPe& me) {
        const auto backend = make_host_backend(*me.rma, me.heap, drive.setup);
        const auto deliveries = [&](std::int32_t chunk_bytes) {
          DirectionSettings settings;
          settings.combine.chunk_bytes = chunk_bytes;
          EXPECT_EQ(backend->cannot_use(Direction::combine, settings.combine), "");
          backend->use(settings);
          backend->dispatch(false);
          backend->run_experts();
          me.collectives->barrier(team_world);
          const int before = delivered;
          backend->combine();
          const int after = delivered;
          EXPECT_FALSE(backend->verify_combine());
          me.collectives->barrier(team_world);
          return after - before;
        };
        backend->poison(); // sets the guards too
        me.collectives->barrier(team_world);
        const int whole = deliveries(1024), phases = deliveries(512), thirds = deliveries(400);
        if (me.pe == 0) {
          EXPECT_EQ(phases - whole, 3); // rows that go to the other rank
          EXPECT_EQ(thirds - whole, 6);
        }
      },
      options);
}

TEST(MoeTune, HostRefusesInvalidChunks) {
  MoeDrive drive = moe_drive(1, 4, 1, 512, 3);
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  run_team_world(1, [&](TeamPe& me) {
    const auto backend = make_host_backend(*me.rma, me.heap, drive.setup);
    const auto problem = [&](std::int32_t chunk_bytes) {
      Settings wanted;
      wanted.chunk_bytes = chunk_bytes;
      return backend->cannot_use(Direction::combine, wanted);
    };
    EXPECT_EQ(problem(1024), "");
    EXPECT_EQ(problem(1), "");
    EXPECT_NE(problem(1025).find("from 1 to 1024"), std::string::npos) << problem(1025);
    EXPECT_NE(problem(0), "");
    EXPECT_NE(backend->cannot_use(Direction::combine, some(1, 1)).find("no sms here"),
              std::string::npos);
  });
}

} // namespace
} // namespace shmemctl::test
