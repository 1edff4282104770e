// Which rank waits for which, and what follows: a slow rank, a slow receiver, or a slow link.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shmemctl::moe {

/// [i][j]: how long rank i waited for the data of rank j, in us. The diagonal does not count, and
/// neither does a 0, which means that i does not wait for j, or that it was not measured.
using WaitMatrix = std::vector<std::vector<double>>;

enum class Culprit {
  rank,     ///< all others wait for one rank: a column
  receiver, ///< one rank waits for all others: a row
  link      ///< one rank waits for another: a cell
};

struct WaitVerdict {
  Culprit culprit;
  int waiting = -1;                 ///< the receiver; -1 for a slow rank
  int awaited = -1;                 ///< the sender; -1 for a slow receiver
  double wait_us = 0, usual_us = 0; ///< mean of the wait, and of the waits that it is compared with
  double late_us = 0;               ///< for two ranks: how much later `awaited` began
  bool of_two = false;              ///< the job has only two ranks
  int more = 0; ///< on the last link only: how many more links are slow, none slower than this one
};

/// Whether rows from one rank to another cross nodes.
using Crosses = std::function<bool(int from, int to)>;

/// Finds slow ranks, receivers and links:
/// - a column or row (of at least two cells) whose mean, and most of whose cells, are over 3 times
///   the mean of the other cells
/// - the slowest five of the remaining cells that are over 5 times the mean of the others
/// Only an excess of more than a tenth of a call's time counts. A cell is compared only with cells
/// of its kind (at least two others): paths that cross nodes, or paths that do not. With two ranks
/// only cells are compared. A wait is reported if it is 5 times that of the other rank and exceeds
/// it by half of a call: as a slow rank if at least half of this excess is due to a later start,
/// otherwise as a slow link (or a delay of the awaited rank before it sends).
/// @param call_us a call's time on the slowest rank
/// @param late [i][j]: how much later than rank i rank j began its call; may be empty (then no wait
/// is due to a later start)
/// @param crosses empty: all cells are of one kind
/// @param forwards whether a rank forwards rows from other nodes within its node. Then a wait
/// within the node may be caused by the network, so that a cell is reported as a slow link only if
/// it is longer than all waits of the awaited rank for other nodes
std::vector<WaitVerdict> judge_waits(const WaitMatrix& waits, double call_us,
                                     const WaitMatrix& late = {}, const Crosses& crosses = {},
                                     bool forwards = false);

/// "PE 2 is slow: the others wait 310 us for it, and 12 us for each other".
std::string describe(const WaitVerdict& verdict);

/// The matrix as text for people; "" for one rank.
std::string wait_text(const WaitMatrix& waits);

} // namespace shmemctl::moe
