#include "src/topo/mapping/choose.h"

namespace shmemctl {

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

} // namespace shmemctl
