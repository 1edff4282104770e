// A small explicit-state model checker: visits every state that a machine can reach.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shmemctl::test {

/// What a machine throws when a property does not hold.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Exploration {
  std::size_t states = 0, transitions = 0, terminals = 0;
  std::string violation;          ///< "" if every property holds in every state
  std::vector<std::string> trace; ///< the shortest path to the violation
};

namespace detail {

struct Fingerprint {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Fingerprint&) const = default;
};
struct FingerprintHash {
  std::size_t operator()(const Fingerprint& print) const { return print.low; }
};

/// 128 bits: among 10 million states the probability of a collision is 1 in 10^24.
template <class State>
Fingerprint fingerprint(const State& state) {
  static_assert(std::has_unique_object_representations_v<State> && sizeof(State) % 8 == 0);
  std::uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&state);
  for (std::size_t at = 0; at < sizeof(State); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    a = (a ^ word) * 0xff51afd7ed558ccd;
    b = (b + word) * 0xc4ceb9fe1a85ec53;
    a ^= a >> 32;
    b ^= b >> 29 ^ a << 7;
  }
  return {a ^ b >> 31, b ^ a >> 33};
}

} // namespace detail

/// Machine:
///   using State                                      plain, hashed by its bytes
///   State start() const
///   unsigned choices(const State&) const             how many moves might be possible
///   bool move(State&, unsigned choice)               false: not possible here; throws Violation
///   std::string name(const State&, unsigned choice)  for traces
///   bool terminal(const State&) const                may throw Violation
/// Checked besides the machine's own properties: from every state a terminal one can be reached
/// (no deadlock, and no loop without a way out).
template <class Machine>
class Explorer {
public:
  using State = typename Machine::State;

  explicit Explorer(Machine& machine, std::size_t max_states = 50'000'000)
      : machine_(machine), max_states_(max_states) {}

  Exploration run() {
    add(machine_.start(), 0, 0);
    while (!queue_.empty() && result_.violation.empty()) {
      const auto [state, id] = queue_.front();
      queue_.pop_front();
      visit(state, id);
      if (ways_.size() > max_states_)
        throw std::runtime_error("more states than expected: the model is too large");
    }
    if (result_.violation.empty())
      find_trap();
    result_.states = ways_.size();
    return std::move(result_);
  }

private:
  struct Way {
    std::uint32_t from;
    std::uint32_t choice;
  };

  std::uint32_t add(const State& state, std::uint32_t from, unsigned choice) {
    const auto id = static_cast<std::uint32_t>(ways_.size());
    const auto [found, fresh] = ids_.try_emplace(detail::fingerprint(state), id);
    if (fresh) {
      ways_.push_back({from, choice});
      queue_.emplace_back(state, id);
    }
    return found->second;
  }

  void visit(const State& state, std::uint32_t id) {
    try {
      if (machine_.terminal(state)) {
        terminals_.push_back(id);
        ++result_.terminals;
      }
    } catch (const Violation& violation) {
      return fail(violation.what(), id);
    }
    const unsigned choices = machine_.choices(state);
    for (unsigned choice = 0; choice < choices; ++choice) {
      State next = state;
      try {
        if (!machine_.move(next, choice))
          continue;
      } catch (const Violation& violation) {
        fail(violation.what(), id);
        result_.trace.push_back(machine_.name(state, choice));
        return;
      }
      ++result_.transitions;
      const std::uint32_t to = add(next, id, choice);
      if (to != id)
        edges_.emplace_back(to, id);
    }
  }

  void fail(const std::string& what, std::uint32_t id) {
    result_.violation = what;
    std::vector<unsigned> choices;
    for (; id != 0; id = ways_[id].from)
      choices.push_back(ways_[id].choice);
    State state = machine_.start();
    for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
      result_.trace.push_back(machine_.name(state, *choice));
      machine_.move(state, *choice);
    }
  }

  /// Backwards from the terminal states: a state that is not reached cannot terminate.
  void find_trap() {
    std::vector<std::uint32_t> starts(ways_.size() + 1, 0), sources(edges_.size());
    for (const auto& [to, from] : edges_)
      ++starts[to + 1];
    for (std::size_t i = 1; i < starts.size(); ++i)
      starts[i] += starts[i - 1];
    std::vector<std::uint32_t> next = starts;
    for (const auto& [to, from] : edges_)
      sources[next[to]++] = from;
    std::vector<bool> ends(ways_.size(), false);
    std::vector<std::uint32_t> stack = terminals_;
    for (const std::uint32_t id : stack)
      ends[id] = true;
    while (!stack.empty()) {
      const std::uint32_t id = stack.back();
      stack.pop_back();
      for (std::uint32_t at = starts[id]; at < starts[id + 1]; ++at)
        if (!ends[sources[at]]) {
          ends[sources[at]] = true;
          stack.push_back(sources[at]);
        }
    }
    for (std::uint32_t id = 0; id < ends.size(); ++id)
      if (!ends[id])
        return fail("deadlock: from here no end can be reached", id);
  }

  Machine& machine_;
  std::size_t max_states_;
  std::unordered_map<detail::Fingerprint, std::uint32_t, detail::FingerprintHash> ids_;
  std::vector<Way> ways_;
  std::deque<std::pair<State, std::uint32_t>> queue_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> terminals_;
  Exploration result_;
};

} // namespace shmemctl::test
