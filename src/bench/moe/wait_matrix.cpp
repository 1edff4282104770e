#include "src/bench/moe/wait_matrix.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace shmemctl::moe {

namespace {

constexpr double line_factor = 3, cell_factor = 5, least_share = 0.1;
/// Of two ranks, one is always the later one.
constexpr double least_share_of_two = 0.5;
/// Of a wait between two ranks, for the rank to be blamed and not the link.
constexpr double least_lateness = 0.5;
/// Where more stand out, it is none of them alone, and nobody reads a list of hundreds.
constexpr std::size_t most_links = 5;

/// Of the cells for which `in` holds, and of the others; the diagonal is left out.
struct Means {
  double inside = 0, outside = 0;
  bool comparable = false;
};
template <class In>
Means means_of(const WaitMatrix& waits, In&& in) {
  double sums[2] = {0, 0};
  int counts[2] = {0, 0};
  for (std::size_t i = 0; i < waits.size(); ++i)
    for (std::size_t j = 0; j < waits.size(); ++j) {
      if (i == j)
        continue;
      const int side = in(static_cast<int>(i), static_cast<int>(j)) ? 0 : 1;
      sums[side] += waits[i][j];
      ++counts[side];
    }
  return {counts[0] > 0 ? sums[0] / counts[0] : 0, counts[1] > 0 ? sums[1] / counts[1] : 0,
          counts[0] > 0 && counts[1] > 0};
}

std::vector<WaitVerdict> slowest(std::vector<WaitVerdict> links) {
  if (links.size() <= most_links)
    return links;
  std::stable_sort(links.begin(), links.end(), [](const WaitVerdict& a, const WaitVerdict& b) {
    return a.wait_us > b.wait_us;
  });
  const auto more = static_cast<int>(links.size() - most_links);
  links.resize(most_links);
  links.back().more = more;
  return links;
}

} // namespace

std::vector<WaitVerdict> judge_waits(const WaitMatrix& waits, double call_us,
                                     const WaitMatrix& late) {
  const int n = static_cast<int>(waits.size());
  std::vector<WaitVerdict> verdicts;
  std::set<int> slow_ranks, slow_receivers;
  const auto stands_out = [&](const Means& means, double factor) {
    return means.comparable && means.inside > factor * means.outside &&
           means.inside - means.outside > (n > 2 ? least_share : least_share_of_two) * call_us;
  };
  for (int rank = 0; n > 2 && rank < n; ++rank) {
    const Means column = means_of(waits, [rank](int, int j) { return j == rank; });
    const Means row = means_of(waits, [rank](int i, int) { return i == rank; });
    // One cell may lift its row and its column: both need all their cells but one above the rest.
    const auto most = [&](bool of_column, double usual) {
      int above = 0;
      for (int other = 0; other < n; ++other)
        above +=
            other != rank &&
                    (of_column
                         ? waits[static_cast<std::size_t>(other)][static_cast<std::size_t>(rank)]
                         : waits[static_cast<std::size_t>(rank)][static_cast<std::size_t>(other)]) >
                        line_factor * usual
                ? 1
                : 0;
      return above > (n - 1) / 2;
    };
    if (stands_out(column, line_factor) && most(true, column.outside)) {
      slow_ranks.insert(rank);
      verdicts.push_back({Culprit::rank, -1, rank, column.inside, column.outside});
    }
    if (stands_out(row, line_factor) && most(false, row.outside)) {
      slow_receivers.insert(rank);
      verdicts.push_back({Culprit::receiver, rank, -1, row.inside, row.outside});
    }
  }
  std::vector<WaitVerdict> cells;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      if (i == j || slow_receivers.count(i) != 0 || slow_ranks.count(j) != 0)
        continue;
      const Means cell = means_of(waits, [&](int a, int b) { return a == i && b == j; });
      if (!stands_out(cell, cell_factor))
        continue;
      const double late_us =
          late.empty() ? 0 : late[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      const bool came_late = n == 2 && late_us >= least_lateness * (cell.inside - cell.outside);
      cells.push_back({came_late ? Culprit::rank : Culprit::link, came_late ? -1 : i, j,
                       cell.inside, cell.outside, late_us, n == 2});
    }
  cells = slowest(std::move(cells));
  verdicts.insert(verdicts.end(), cells.begin(), cells.end());
  return verdicts;
}

std::string describe(const WaitVerdict& verdict) {
  switch (verdict.culprit) {
  case Culprit::rank:
    if (verdict.of_two)
      return fmt::format("PE {} is slow: the other waits {:.0f} us for it, which begins {:.0f} us "
                         "later",
                         verdict.awaited, verdict.wait_us, verdict.late_us);
    return fmt::format("PE {} is slow: the others wait {:.0f} us for it, and {:.0f} us for each "
                       "other",
                       verdict.awaited, verdict.wait_us, verdict.usual_us);
  case Culprit::receiver:
    return fmt::format("PE {} receives slowly: it waits {:.0f} us for each, the others {:.0f} us",
                       verdict.waiting, verdict.wait_us, verdict.usual_us);
  case Culprit::link:
    if (verdict.of_two)
      return fmt::format("the way from PE {} to PE {} is slow, or what PE {} does before it sends: "
                         "{:.0f} us, the other way {:.0f} us; it began at most {:.0f} us later",
                         verdict.awaited, verdict.waiting, verdict.awaited, verdict.wait_us,
                         verdict.usual_us, verdict.late_us);
    return fmt::format("the way from PE {} to PE {} is slow: {:.0f} us, the others {:.0f} us{}",
                       verdict.awaited, verdict.waiting, verdict.wait_us, verdict.usual_us,
                       verdict.more > 0 ? fmt::format("; so are {} more", verdict.more) : "");
  }
  return "";
}

std::string wait_text(const WaitMatrix& waits) {
  if (waits.size() < 2)
    return "";
  std::string text = "PE waits for PE [us]";
  for (std::size_t j = 0; j < waits.size(); ++j)
    text += fmt::format("{:>9}", j);
  text += '\n';
  for (std::size_t i = 0; i < waits.size(); ++i) {
    text += fmt::format("{:>20}", i);
    for (std::size_t j = 0; j < waits.size(); ++j)
      text += i == j ? fmt::format("{:>9}", "-") : fmt::format("{:>9.1f}", waits[i][j]);
    text += '\n';
  }
  return text;
}

} // namespace shmemctl::moe
