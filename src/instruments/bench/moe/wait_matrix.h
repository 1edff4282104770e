// Which rank waits for which, and what that says: a slow rank, a slow receiver, or a slow link.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shmemctl::moe {

/// [i][j]: how long rank i waited for what rank j sends it, in us; the diagonal does not count, nor
/// does a 0: i does not wait for j, or it is not measured.
using WaitMatrix = std::vector<std::vector<double>>;

enum class Culprit {
  rank,     ///< all wait for it: a column
  receiver, ///< it waits for all: a row
  link      ///< one waits for one: a cell
};

struct WaitVerdict {
  Culprit culprit;
  int waiting = -1;                 ///< the receiver; -1 for a slow rank
  int awaited = -1;                 ///< the sender; -1 for a slow receiver
  double wait_us = 0, usual_us = 0; ///< the mean of it, and of what it is compared with
  double late_us = 0;               ///< of two ranks: how much of the wait is that it began later
  bool of_two = false;              ///< there are only two ranks
  int more = 0;                     ///< of the last link: how many more links are slow, none slower
};

/// Whether what goes from one rank to another crosses a node.
using Crosses = std::function<bool(int from, int to)>;

/// Ranks and receivers whose mean is 3 times that of all others, as are most of its cells (of two
/// at least), then cells of the rest that are 5 times the others, the slowest five; but only what
/// adds more than a tenth to the time of a call. A cell is compared with those of its kind only
/// (two others at least): ways that cross nodes, or ways that do not. With two ranks a column, a
/// row and a cell are the same: it takes half of a call, and is the rank if at least half of the
/// wait is that it began later, else the link (or what the rank does before it sends).
/// @param call_us a call's time on the slowest rank
/// @param late [i][j]: of waits[i][j], what is known to be rank j's coming later than i; may be
/// empty
/// @param crosses empty: all cells are of one kind
/// @param forwards a rank sends on to its node what reaches it from others: who waits for it within
/// the node may wait for the network, so that such a cell is no slow link unless it is longer than
/// all of that rank's own waits for other nodes
std::vector<WaitVerdict> judge_waits(const WaitMatrix& waits, double call_us,
                                     const WaitMatrix& late = {}, const Crosses& crosses = {},
                                     bool forwards = false);

/// "PE 2 is slow: the others wait 310 us for it, and 12 us for each other".
std::string describe(const WaitVerdict& verdict);

/// Lines for people; "" for one rank.
std::string wait_text(const WaitMatrix& waits);

} // namespace shmemctl::moe
