#include "src/instruments/bench/moe/wait_matrix.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace shmemctl::moe {

namespace {

constexpr double line_factor = 3, cell_factor = 5, min_share = 0.1;
/// With two ranks, one is always later than the other. Therefore one's wait must exceed the other's
/// by this share of a call.
constexpr double min_share_of_two = 0.5;
/// With two ranks: if a rank's later start explains at least this share of that excess, the rank is
/// blamed and not the link.
constexpr double min_lateness = 0.5;
/// With more than two ranks: how many other cells of the same kind are needed to know the usual
/// wait. One is not enough, because one of two cells, too, always belongs to the later rank.
constexpr int min_others = 2;
/// If more links are slow, no single one is the cause, and a list of hundreds would not be useful.
constexpr std::size_t max_links = 5;

/// A measured wait, and the usual wait for its kind of path.
struct Cell {
  double wait_us = 0, usual_us = 0;
};
/// Some cells of the matrix, compared with all other cells.
struct Part {
  std::vector<Cell> cells; ///< cells with enough others of their kind
  double inside_us = 0, usual_us = 0;
};

class Judge {
public:
  Judge(const WaitMatrix& waits, double call_us, const Crosses& crosses)
      : waits_(waits), crosses_(crosses), n_(static_cast<int>(waits.size())), call_us_(call_us) {}

  /// Compares the cells for which in(i, j) is true with the others.
  template <class In>
  Part part(const In& in) const {
    double sums_us[2] = {0, 0};
    int counts[2] = {0, 0};
    each([&](int i, int j) {
      if (in(i, j))
        return;
      sums_us[kind(i, j)] += at(i, j);
      ++counts[kind(i, j)];
    });
    Part part;
    each([&](int i, int j) {
      const int of = kind(i, j);
      if (in(i, j) && counts[of] >= (n_ > 2 ? min_others : 1))
        part.cells.push_back({at(i, j), sums_us[of] / counts[of]});
    });
    for (const Cell& cell : part.cells) {
      part.inside_us += cell.wait_us / static_cast<double>(part.cells.size());
      part.usual_us += cell.usual_us / static_cast<double>(part.cells.size());
    }
    return part;
  }
  bool stands_out(const Part& part, double factor) const {
    return !part.cells.empty() && part.inside_us > factor * part.usual_us &&
           part.inside_us - part.usual_us > (n_ > 2 ? min_share : min_share_of_two) * call_us_;
  }
  /// Whether a row or column stands out: as a whole, and in most of its cells. It must have more
  /// than one cell, because a single slow cell raises the means of both its row and its column.
  bool line_stands_out(const Part& line) const {
    const auto above = std::count_if(line.cells.begin(), line.cells.end(), [](const Cell& cell) {
      return cell.wait_us > line_factor * cell.usual_us;
    });
    return line.cells.size() > 1 && above > static_cast<std::ptrdiff_t>(line.cells.size() / 2) &&
           stands_out(line, line_factor);
  }
  /// Whether i's wait for j, which is on the same node, may be caused by j's wait for another node.
  bool waits_for_other_nodes(int i, int j) const {
    if (!crosses_ || kind(i, j) != 0)
      return false;
    for (int k = 0; k < n_; ++k)
      if (k != j && kind(j, k) != 0 && at(j, k) >= at(i, j))
        return true;
    return false;
  }

private:
  double at(int i, int j) const {
    return waits_[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  }
  int kind(int i, int j) const { return crosses_ && crosses_(j, i) ? 1 : 0; }
  /// Calls act(i, j) for each cell that was measured.
  template <class Act>
  void each(const Act& act) const {
    for (int i = 0; i < n_; ++i)
      for (int j = 0; j < n_; ++j)
        if (i != j && at(i, j) > 0)
          act(i, j);
  }

  const WaitMatrix& waits_;
  const Crosses& crosses_;
  const int n_;
  const double call_us_;
};

std::vector<WaitVerdict> slowest(std::vector<WaitVerdict> links) {
  if (links.size() <= max_links)
    return links;
  std::stable_sort(links.begin(), links.end(), [](const WaitVerdict& a, const WaitVerdict& b) {
    return a.wait_us > b.wait_us;
  });
  const auto more = static_cast<int>(links.size() - max_links);
  links.resize(max_links);
  links.back().more = more;
  return links;
}

} // namespace

std::vector<WaitVerdict> judge_waits(const WaitMatrix& waits, double call_us,
                                     const WaitMatrix& late, const Crosses& crosses,
                                     bool forwards) {
  const int n = static_cast<int>(waits.size());
  const Judge judge(waits, call_us, crosses);
  std::vector<WaitVerdict> verdicts;
  std::set<int> slow_ranks, slow_receivers;
  for (int rank = 0; n > 2 && rank < n; ++rank) {
    const Part column = judge.part([rank](int, int j) { return j == rank; });
    if (judge.line_stands_out(column)) {
      slow_ranks.insert(rank);
      verdicts.push_back({Culprit::rank, -1, rank, column.inside_us, column.usual_us});
    }
    const Part row = judge.part([rank](int i, int) { return i == rank; });
    if (judge.line_stands_out(row)) {
      slow_receivers.insert(rank);
      verdicts.push_back({Culprit::receiver, rank, -1, row.inside_us, row.usual_us});
    }
  }
  std::vector<WaitVerdict> cells;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      if (i == j || slow_receivers.count(i) != 0 || slow_ranks.count(j) != 0)
        continue;
      const Part cell = judge.part([&](int a, int b) { return a == i && b == j; });
      if (!judge.stands_out(cell, cell_factor) || (forwards && judge.waits_for_other_nodes(i, j)))
        continue;
      const double late_us =
          late.empty() ? 0 : late[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      const bool arrived_late =
          n == 2 && late_us >= min_lateness * (cell.inside_us - cell.usual_us);
      cells.push_back({arrived_late ? Culprit::rank : Culprit::link, arrived_late ? -1 : i, j,
                       cell.inside_us, cell.usual_us, late_us, n == 2});
    }
  cells = slowest(std::move(cells));
  verdicts.insert(verdicts.end(), cells.begin(), cells.end());
  return verdicts;
}

std::string describe(const WaitVerdict& verdict) {
  switch (verdict.culprit) {
  case Culprit::rank:
    if (verdict.of_two)
      return fmt::format("PE {} is slow: the other PE waits {:.0f} us for it, {:.0f} us of them "
                         "because it starts late",
                         verdict.awaited, verdict.wait_us,
                         std::min(verdict.late_us, verdict.wait_us));
    return fmt::format("PE {} is slow: the others wait {:.0f} us for it, and {:.0f} us for each "
                       "other",
                       verdict.awaited, verdict.wait_us, verdict.usual_us);
  case Culprit::receiver:
    return fmt::format("PE {} receives slowly: it waits {:.0f} us for each, the others {:.0f} us",
                       verdict.waiting, verdict.wait_us, verdict.usual_us);
  case Culprit::link:
    if (verdict.of_two)
      return fmt::format(
          "the path from PE {} to PE {} is slow, or what PE {} does before it sends: "
          "{:.0f} us, the other direction {:.0f} us{}",
          verdict.awaited, verdict.waiting, verdict.awaited, verdict.wait_us, verdict.usual_us,
          verdict.late_us < 0.5 ? ""
                                : fmt::format("; PE {} starts at most {:.0f} us late",
                                              verdict.awaited, verdict.late_us));
    return fmt::format("the path from PE {} to PE {} is slow: {:.0f} us, the others {:.0f} us{}",
                       verdict.awaited, verdict.waiting, verdict.wait_us, verdict.usual_us,
                       verdict.more > 0 ? fmt::format("; so are {} more", verdict.more) : "");
  }
  return "";
}

std::string wait_text(const WaitMatrix& waits) {
  if (waits.size() < 2)
    return "";
  std::string text = "how long a PE waits for another, in us\n  a row waits for | PE";
  for (std::size_t j = 0; j < waits.size(); ++j)
    text += fmt::format("{:>9}", j);
  text += '\n';
  for (std::size_t i = 0; i < waits.size(); ++i) {
    text += fmt::format("  {:>15} |   ", fmt::format("PE {}", i));
    for (std::size_t j = 0; j < waits.size(); ++j)
      text += i == j || waits[i][j] <= 0 ? fmt::format("{:>9}", "-")
                                         : fmt::format("{:>9.1f}", waits[i][j]);
    text += '\n';
  }
  return text;
}

} // namespace shmemctl::moe
