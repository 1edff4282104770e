#include "src/runtime/lifeline_tree.h"

#include <algorithm>

namespace shmemctl::lifeline {

namespace {
int parent(int rank) {
  return (rank - 1) / 2;
}
} // namespace

std::vector<int> connects_to(int rank, int size) {
  if (rank <= 0 || rank >= size)
    return {};
  if (rank == 1)
    return {0};
  if (rank == 2)
    return {0, 1};
  return {parent(parent(rank)), parent(rank)};
}

std::vector<int> accepts_from(int rank, int size) {
  std::vector<int> accepted;
  // Grandchildren end at 4 * rank + 6; the sibling link of PE 1 lies before that.
  const long long last = std::min<long long>(4LL * rank + 6, size - 1);
  for (int other = rank + 1; other <= last; ++other) {
    const std::vector<int> opened = connects_to(other, size);
    if (std::find(opened.begin(), opened.end(), rank) != opened.end())
      accepted.push_back(other);
  }
  return accepted;
}

std::vector<int> neighbours(int rank, int size) {
  std::vector<int> all = connects_to(rank, size);
  const std::vector<int> accepted = accepts_from(rank, size);
  all.insert(all.end(), accepted.begin(), accepted.end());
  return all;
}

} // namespace shmemctl::lifeline
