// Expects a model whose every state is correct.
#pragma once

#include <gtest/gtest.h>
#include <iostream>

#include "tests/unit/runtime/proxy/ring_model.h"

namespace shmemctl::test {

inline std::string text_of(const Exploration& exploration) {
  std::string text = exploration.violation;
  for (const std::string& step : exploration.trace)
    text += "\n  " + step;
  return text;
}

/// All properties hold in all states, and there are enough states for that to be meaningful.
template <class Traits>
void expect_right(const ModelSetting& setting, std::size_t min_states) {
  RingMachine<RightParts<Traits>> machine(setting);
  const Exploration found = Explorer(machine).run();
  std::cout << found.states << " states, " << found.transitions << " transitions, "
            << found.terminals << " ends\n";
  EXPECT_EQ(found.violation, "") << text_of(found);
  EXPECT_GT(found.states, min_states);
  EXPECT_GE(found.terminals, 1u);
}

} // namespace shmemctl::test
