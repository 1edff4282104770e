#include "src/topo/mapping/choose.h"

#include <algorithm>

namespace shmemctl {

namespace {

/// M: a PE's share of the rows, at least one.
int slots_per_pe(int table_size, std::size_t pes) {
  return std::max(1, pes == 0 ? 1 : table_size / static_cast<int>(pes));
}

/// The answers that do not depend on distance: an empty table, one row, or PE i to row i.
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

RowChoice choose_rows(Generation generation, int table_size, const ClassMatrix& classes,
                      bool enable_nic_pe_mapping) {
  if (decided_without_distance(table_size, enable_nic_pe_mapping))
    return choose_without_distance(table_size, classes.size());
  BalanceRules rules;
  switch (generation) {
  case Generation::A:
    return choose_nearest(classes);
  case Generation::B:
    return choose_greedy(classes);
  case Generation::C0:
    rules.scans_other_pes = true;
    break;
  case Generation::C1:
    break;
  case Generation::D:
    rules.slots_per_pe = slots_per_pe(table_size, classes.size());
    rules.slot_taken_for_pe = true;
    break;
  case Generation::E:
  case Generation::F:
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

} // namespace shmemctl
