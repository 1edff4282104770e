// NVSHMEM's algorithms that choose NICs for each GPU: nearest, greedy, balanced in two passes.
#include "src/model/topo/mapping/nvshmem_balance.h"

#include <algorithm>

namespace shmemctl {

namespace {

/// How many rows of the device table each PE gets, at least one.
int slots_per_pe(int table_size, std::size_t pes) {
  return std::max(1, pes == 0 ? 1 : table_size / static_cast<int>(pes));
}

/// The cases that do not depend on distance: an empty table, one row, or PE i to row i.
bool decided_without_distance(int table_size, bool enable_nic_pe_mapping) {
  return table_size <= 1 || enable_nic_pe_mapping;
}
RowChoice choose_without_distance(int table_size, std::size_t pes) {
  RowChoice choice(pes);
  for (std::size_t pe = 0; table_size > 0 && pe < pes; ++pe)
    choice[pe].push_back(static_cast<int>(pe) % table_size);
  return choice;
}

} // namespace

RowChoice choose_rows(ReleaseFamily family, int table_size, const ClassMatrix& classes,
                      bool enable_nic_pe_mapping) {
  if (decided_without_distance(table_size, enable_nic_pe_mapping))
    return choose_without_distance(table_size, classes.size());
  BalanceRules rules;
  switch (family) {
  case ReleaseFamily::v1_0:
    return choose_nearest(classes);
  case ReleaseFamily::v2_0:
    return choose_greedy(classes);
  case ReleaseFamily::v2_4:
    rules.scans_other_pes = true;
    break;
  case ReleaseFamily::v2_5:
    break;
  case ReleaseFamily::v2_11:
    rules.slots_per_pe = slots_per_pe(table_size, classes.size());
    rules.slot_taken_for_pe = true;
    break;
  case ReleaseFamily::v3_5:
  case ReleaseFamily::v3_7:
    rules.slots_per_pe = slots_per_pe(table_size, classes.size());
    break;
  }
  return choose_balanced(classes, rules);
}

RowChoice choose_rows_exclusive(int table_size, const ClassMatrix& classes_of_gpus,
                                const std::vector<int>& gpu_of_pe, bool enable_nic_pe_mapping) {
  if (decided_without_distance(table_size, enable_nic_pe_mapping))
    return choose_without_distance(table_size, gpu_of_pe.size());
  BalanceRules rules;
  rules.slots_per_pe = slots_per_pe(table_size, classes_of_gpus.size());
  const RowChoice of_gpus = choose_balanced(classes_of_gpus, rules);
  RowChoice choice;
  for (const int gpu : gpu_of_pe) {
    const bool present = gpu >= 0 && gpu < static_cast<int>(of_gpus.size());
    choice.push_back(present ? of_gpus[static_cast<std::size_t>(gpu)] : std::vector<int>{});
  }
  return choice;
}

RowChoice choose_nearest(const ClassMatrix& classes) {
  RowChoice choice;
  for (const std::vector<PathClass>& to_row : classes) {
    std::size_t best = 0;
    for (std::size_t row = 1; row < to_row.size(); ++row)
      if (to_row[row] < to_row[best])
        best = row;
    choice.push_back({static_cast<int>(best)});
  }
  return choice;
}

RowChoice choose_greedy(const ClassMatrix& classes) {
  RowChoice choice;
  std::vector<int> uses(classes.empty() ? 0 : classes.front().size(), 0);
  for (const std::vector<PathClass>& to_row : classes) {
    std::size_t best = 0;
    for (std::size_t row = 1; row < to_row.size(); ++row) {
      const bool nearer = to_row[row] < to_row[best];
      const bool near_enough = to_row[row] == to_row[best] || to_row[row] <= PathClass::pxb;
      if (nearer || (uses[row] < uses[best] && near_enough))
        best = row;
    }
    ++uses[best];
    choice.push_back({static_cast<int>(best)});
  }
  return choice;
}

namespace {

constexpr int unset = -1;
constexpr int none_as_good = -2;

/// PIX and PXB are equivalent.
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
  /// NVSHMEM 2.11 to 3.4.5 start with a class that is not in their table of ranks and read beyond
  /// its end, where a 0 was observed. No class ranks below SYS, so that starting with SYS gives the
  /// same result.
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
    return result();
  }

private:
  /// Sorts by class, then PE, then row.
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

  /// First pass. A PE takes rows as long as they rank no lower than the row in its first slot.
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

  /// The pairs that the second pass considers for a slot.
  const std::vector<Pair>& candidates(int slot) const {
    static const std::vector<Pair> nothing;
    if (rules_.scans_other_pes)
      return pairs_;
    // Using the slot number as PE is an error of NVSHMEM (BalanceRules), reproduced here.
    const int pe = rules_.slot_taken_for_pe ? slot : slot / rules_.slots_per_pe;
    return pe < pes_ ? pairs_of_pe_[static_cast<std::size_t>(pe)] : nothing;
  }

  /// The second pass for one slot: moves it to a row with at least two users fewer, but never to a
  /// class of lower rank.
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

  RowChoice result() {
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
