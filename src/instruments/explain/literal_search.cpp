#include "src/instruments/explain/literal_search.h"

#include <queue>

namespace shmemctl::explain {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

/// The automaton while it is built, with states in order of insertion.
struct Builder {
  std::size_t columns;
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> fallback;
  std::vector<std::vector<std::uint32_t>> outputs;

  explicit Builder(std::size_t column_count) : columns(column_count) { add_state(); }

  std::uint32_t add_state() {
    next.insert(next.end(), columns, none);
    fallback.push_back(0);
    outputs.emplace_back();
    return static_cast<std::uint32_t>(outputs.size() - 1);
  }
};

/// Completes the table: a state without an edge for a byte gets the edge of its longest suffix.
void complete(Builder& builder) {
  std::queue<std::uint32_t> waiting;
  for (std::size_t column = 0; column < builder.columns; ++column) {
    std::uint32_t& target = builder.next[column];
    if (target == none)
      target = 0;
    else
      waiting.push(target);
  }
  while (!waiting.empty()) {
    const std::uint32_t state = waiting.front();
    waiting.pop();
    const std::uint32_t shorter = builder.fallback[state];
    const std::vector<std::uint32_t> inherited = builder.outputs[shorter];
    builder.outputs[state].insert(builder.outputs[state].end(), inherited.begin(), inherited.end());
    for (std::size_t column = 0; column < builder.columns; ++column) {
      const std::uint32_t of_shorter = builder.next[shorter * builder.columns + column];
      std::uint32_t& target = builder.next[state * builder.columns + column];
      if (target == none) {
        target = of_shorter;
      } else {
        builder.fallback[target] = of_shorter;
        waiting.push(target);
      }
    }
  }
}

} // namespace

LiteralSearch::LiteralSearch(const std::vector<std::string>& literals) {
  for (const std::string& literal : literals)
    for (const char byte : literal) {
      std::uint8_t& column = column_[static_cast<unsigned char>(byte)];
      if (column == 0 && columns_ < 256)
        column = static_cast<std::uint8_t>(columns_++);
    }
  Builder builder(columns_);
  for (std::uint32_t i = 0; i < literals.size(); ++i) {
    std::uint32_t state = 0;
    for (const char byte : literals[i]) {
      const std::size_t edge = state * columns_ + column_[static_cast<unsigned char>(byte)];
      if (builder.next[edge] == none) {
        const std::uint32_t added = builder.add_state();
        builder.next[edge] = added;
      }
      state = builder.next[edge];
    }
    builder.outputs[state].push_back(i);
  }
  complete(builder);

  const auto states = static_cast<std::uint32_t>(builder.outputs.size());
  std::vector<std::uint32_t> number(states);
  std::uint32_t count = 0;
  for (std::uint32_t state = 0; state < states; ++state)
    if (builder.outputs[state].empty())
      number[state] = count++;
  first_output_state_ = count;
  for (std::uint32_t state = 0; state < states; ++state)
    if (!builder.outputs[state].empty()) {
      number[state] = count++;
      outputs_.push_back(std::move(builder.outputs[state]));
    }
  next_.resize(builder.next.size());
  for (std::uint32_t state = 0; state < states; ++state)
    for (std::size_t column = 0; column < columns_; ++column)
      next_[number[state] * columns_ + column] = number[builder.next[state * columns_ + column]];
}

} // namespace shmemctl::explain
