#include "src/instruments/bringup/pair_check.h"

#include <algorithm>

#include "src/instruments/bringup/pair_round.h"
#include "src/instruments/bringup/schedule.h"

namespace shmemctl {

const char* to_string(PairOp op) {
  switch (op) {
  case PairOp::put:
    return "put";
  case PairOp::get:
    return "get";
  case PairOp::fetch_add:
    return "fetch-add";
  case PairOp::compare_swap:
    return "compare-swap";
  case PairOp::put_signal:
    return "put-signal";
  }
  return "put";
}

unsigned needed_capability(PairOp op) {
  switch (op) {
  case PairOp::put:
    return can_put;
  case PairOp::get:
    return can_get;
  case PairOp::fetch_add:
  case PairOp::compare_swap:
    return can_atomics;
  case PairOp::put_signal:
    return can_put_signal;
  }
  return can_put;
}

std::vector<PairFailure> check_pairs(const PairWorld& world) {
  std::vector<PairFailure> failures;
  std::fill_n(world.buffer, world.layout.size_bytes(), sentinel);
  bool signals_missed = false;
  for (int round = 0; round < round_count(world.rma.n_pes()); ++round) {
    if (world.announce)
      world.announce(round);
    PairRound now(world, round, failures, signals_missed);
    now.prepare();
    world.sync();
    now.act();
    now.await_signals();
    world.sync();
    now.verify();
  }
  world.sync(); // the memory must not be freed while another PE still verifies it
  return failures;
}

} // namespace shmemctl
