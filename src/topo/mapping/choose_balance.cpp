// Generations C0 to F: a list of all (PE, row) pairs by class, a first pass that fills each PE's
// slots from it, and a second one that moves slots away from rows that others use as well
// (research section 5).
#include <algorithm>

#include "src/topo/mapping/choose.h"

namespace shmemctl {

namespace {

constexpr int unset = -1;
constexpr int none_as_good = -2;

/// PIX and PXB perform alike.
int rank(PathClass path) {
  switch (path) {
  case PathClass::pix:
  case PathClass::pxb:
    return 4;
  case PathClass::phb:
    return 3;
  case PathClass::node:
    return 2;
  default:
    return 1;
  }
}

struct Pair {
  int pe = 0;
  int row = 0;
  PathClass path = PathClass::sys;
};
struct Slot {
  int row = unset;
  /// 2.11 to 3.4.5 start with a class that has no rank and read past their table, where a 0 was
  /// observed. No class ranks below SYS, so both beginnings decide alike.
  PathClass path = PathClass::sys;
};

class Balancer {
public:
  Balancer(const ClassMatrix& classes, const BalanceRules& rules)
      : rules_(rules), pes_(static_cast<int>(classes.size())),
        slots_(classes.size() * static_cast<std::size_t>(rules.slots_per_pe)),
        uses_(classes.empty() ? 0 : classes.front().size(), 0), pairs_of_pe_(classes.size()) {
    sort_pairs(classes);
  }

  RowChoice run() {
    fill();
    for (int slot = 0; slot < pes_ * rules_.slots_per_pe; ++slot)
      balance(slot);
    return answer();
  }

private:
  /// By class, then PE, then row.
  void sort_pairs(const ClassMatrix& classes) {
    for (int pe = 0; pe < pes_; ++pe) {
      const std::vector<PathClass>& to_row = classes[static_cast<std::size_t>(pe)];
      for (std::size_t row = 0; row < to_row.size(); ++row)
        pairs_.push_back({pe, static_cast<int>(row), to_row[row]});
    }
    std::stable_sort(pairs_.begin(), pairs_.end(),
                     [](const Pair& left, const Pair& right) { return left.path < right.path; });
    for (const Pair& pair : pairs_)
      pairs_of_pe_[static_cast<std::size_t>(pair.pe)].push_back(pair);
  }

  Slot& slot_at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }
  int& uses_of(int row) { return uses_[static_cast<std::size_t>(row)]; }

  /// First pass. A PE takes rows as long as they rank no lower than the one in its first slot.
  void fill() {
    int undecided = pes_ * rules_.slots_per_pe;
    for (const Pair& pair : pairs_) {
      if (undecided == 0)
        return;
      const int first = pair.pe * rules_.slots_per_pe;
      const int end = first + rules_.slots_per_pe;
      int free = first;
      while (free < end && slot_at(free).row != unset)
        ++free;
      if (free == end)
        continue;
      if (rank(pair.path) < rank(slot_at(first).path)) {
        for (; free < end; ++free, --undecided)
          slot_at(free).row = none_as_good;
      } else {
        slot_at(free) = {pair.row, pair.path};
        ++uses_of(pair.row);
        --undecided;
      }
    }
  }

  /// The pairs that the second pass looks at for a slot.
  const std::vector<Pair>& candidates(int slot) const {
    static const std::vector<Pair> nothing;
    if (rules_.scans_other_pes)
      return pairs_;
    const int pe = rules_.slot_taken_for_pe ? slot : slot / rules_.slots_per_pe;
    return pe < pes_ ? pairs_of_pe_[static_cast<std::size_t>(pe)] : nothing;
  }

  /// Second pass, one slot: move it to a row with at least two users less, but never to a class of
  /// lower rank.
  void balance(int index) {
    Slot& slot = slot_at(index);
    if (slot.row < 0)
      return;
    int density = uses_of(slot.row);
    for (const Pair& pair : candidates(index)) {
      if (density < 2 || rank(pair.path) < rank(slot.path))
        return;
      if (density - uses_of(pair.row) < 2)
        continue;
      --uses_of(slot.row);
      density = ++uses_of(pair.row);
      slot = {pair.row, pair.path};
    }
  }

  RowChoice answer() {
    RowChoice choice(static_cast<std::size_t>(pes_));
    for (int slot = 0; slot < pes_ * rules_.slots_per_pe; ++slot)
      if (slot_at(slot).row >= 0)
        choice[static_cast<std::size_t>(slot / rules_.slots_per_pe)].push_back(slot_at(slot).row);
    return choice;
  }

  BalanceRules rules_;
  int pes_;
  std::vector<Slot> slots_;
  std::vector<int> uses_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<Pair>> pairs_of_pe_;
};

} // namespace

RowChoice choose_balanced(const ClassMatrix& classes, const BalanceRules& rules) {
  return Balancer(classes, rules).run();
}

} // namespace shmemctl
