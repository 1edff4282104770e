// Runs the host backend on PEs that are threads, as the measurement does.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/instruments/bench/moe/host_backend.h"
#include "src/model/moe/shape_rules.h"
#include "tests/support/team_world.h"

namespace shmemctl::test {

struct MoeDrive {
  moe::Setup setup;
  moe::RoutingRequest routing;
  int pes_per_node = 0; ///< 0: all memory is mapped; else NetworkOnlyTransport between these nodes
  int chained = 3;      ///< dispatches and combines without any barrier, behind the first
  unsigned delays_us = 0; ///< at most, before each call, differently on each PE
  moe::Mutation mutation;
  /// For the PE that has entered the dispatch which the mutation delays: it continues when all but
  /// it have verified.
  bool gated = false;
  /// NetworkOnlyTransport takes its time in the first dispatch of the rank that the mutation is of.
  bool slow_deliveries = false;
  /// For mutations by which rows arrive while other ranks read them: then all ranks stop.
  bool dispatch_only = false;
};

/// A setup with small numbers.
inline MoeDrive moe_drive(int ranks, int experts, int top_k, int hidden, int tokens) {
  MoeDrive drive;
  moe::Shape& shape = drive.setup.shape;
  shape.n_ranks = ranks;
  shape.n_experts = experts;
  shape.top_k = top_k;
  shape.hidden = hidden;
  shape.max_tokens = tokens;
  drive.setup.node_ranks = ranks;
  drive.routing.tokens = tokens;
  return drive;
}
inline MoeDrive low_latency(MoeDrive drive, moe::Combine combine) {
  drive.setup.mode = moe::Mode::low_latency;
  drive.setup.combine = combine;
  return drive;
}

inline MoeDrive by_expert(const MoeDrive& drive) {
  MoeDrive packed = low_latency(drive, moe::Combine::weighted);
  packed.setup.by_expert = true;
  return packed;
}

/// What each rank found wrong; "": nothing.
struct MoeFound {
  std::string first_dispatch, first_combine, last_dispatch, last_combine;
  bool all_well() const {
    return first_dispatch.empty() && first_combine.empty() && last_dispatch.empty() &&
           last_combine.empty();
  }
  std::string words() const {
    return first_dispatch + "|" + first_combine + "|" + last_dispatch + "|" + last_combine;
  }
};

class MoeRun {
public:
  explicit MoeRun(const MoeDrive& drive) : drive_(drive) {
    moe::validate(drive_.setup.shape, drive_.setup.format);
    routing_ = moe::make_routing(drive_.setup.shape, drive_.routing);
    drive_.setup.routing = &routing_;
    found_.resize(static_cast<std::size_t>(drive_.setup.shape.n_ranks));
  }

  std::vector<MoeFound> run() {
    TeamWorldOptions options;
    options.pes_per_node = drive_.pes_per_node;
    options.heap_bytes = moe::host_backend_bytes(drive_.setup) / 4096 * 4096 + 8192;
    if (drive_.slow_deliveries)
      options.between_deliveries = [this](int pe) {
        // Long enough to expose a reader that was signalled too early; no longer than that needs.
        for (int ms = 0; ms < 20 && pe == drive_.mutation.rank && sending_ && verified_ == 0; ++ms)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      };
    run_team_world(
        drive_.setup.shape.n_ranks, [this](TeamPe& me) { on(me); }, options);
    return found_;
  }

private:
  void delay(TeamPe& me, int step) const {
    if (drive_.delays_us == 0)
      return;
    const unsigned chosen = moe::mixed(static_cast<unsigned>(me.pe * 1000 + step));
    std::this_thread::sleep_for(std::chrono::microseconds(chosen % drive_.delays_us));
  }

  void on(TeamPe& me) {
    moe::Mutation mutation = drive_.mutation;
    std::atomic<int>& verified = verified_;
    if (drive_.gated)
      mutation.gate = [this, &verified, &me] {
        if (gate_passed_)
          return;
        me.rma->wait([&] { return verified.load() == me.n_pes - 1; }, "the test's gate");
        gate_passed_ = true;
      };
    const auto backend = moe::make_host_backend(*me.rma, me.heap, drive_.setup, mutation);
    MoeFound& found = found_[static_cast<std::size_t>(me.pe)];
    me.collectives->barrier(team_world);
    backend->poison();
    me.collectives->barrier(team_world);
    sending_ = true;
    backend->dispatch(false);
    found.first_dispatch = backend->verify_dispatch().value_or("");
    ++verified;
    if (drive_.dispatch_only)
      return me.collectives->barrier(team_world);
    backend->run_experts();
    backend->combine();
    found.first_combine = backend->verify_combine().value_or("");
    for (int i = 0; i < drive_.chained; ++i) {
      delay(me, 2 * i);
      backend->dispatch(i % 2 == 0);
      backend->run_experts();
      delay(me, 2 * i + 1);
      backend->combine();
    }
    found.last_dispatch = backend->verify_dispatch().value_or("");
    found.last_combine = backend->verify_combine().value_or("");
    me.collectives->barrier(team_world);
  }

  MoeDrive drive_;
  moe::Routing routing_;
  std::vector<MoeFound> found_;
  std::atomic<int> verified_{0};
  std::atomic<bool> gate_passed_{false}, sending_{false};
};

inline std::string describe(const MoeDrive& drive) {
  const moe::Shape& shape = drive.setup.shape;
  return std::to_string(shape.n_ranks) + " ranks, " + std::to_string(shape.n_experts) +
         " experts, top " + std::to_string(shape.top_k) + ", hidden " +
         std::to_string(shape.hidden) + ", " + std::to_string(drive.routing.tokens) + " tokens, " +
         to_string(drive.routing.kind) + ", " + to_string(drive.setup.mode) + ", " +
         to_string(drive.setup.format) + ", " + to_string(drive.setup.combine) +
         (drive.setup.by_expert ? ", by expert" : "") +
         (drive.setup.node_ranks != shape.n_ranks ? ", nodes" : "");
}

inline void expect_right(const MoeDrive& drive) {
  const std::vector<MoeFound> found = MoeRun(drive).run();
  for (const MoeFound& of_rank : found)
    EXPECT_TRUE(of_rank.all_well()) << describe(drive) << ": " << of_rank.words();
}

} // namespace shmemctl::test
