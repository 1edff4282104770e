// One side of a comparison: the rows of many runs, put together by their independent variables.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/compare/load.h"

namespace shmemctl {

/// What one run has for a row; a row that occurs twice in a run counts as one.
struct RunOfRow {
  std::vector<const ResultRow*> rows; ///< of the reports, which outlive this
};

/// A tuple of independent variables and its runs.
struct SideRow {
  std::string key; ///< the same on both sides
  std::vector<std::string> hosts;
  std::string transports;     ///< "libfabric", where rows that are alike otherwise went by others
  std::vector<RunOfRow> runs; ///< runs that have it, in the order of the reports
  const ResultRow& first() const { return *runs.front().rows.front(); }
};

struct Side {
  std::size_t n_runs = 0;
  std::vector<SideRow> rows; ///< in order of appearance
  std::map<std::string, std::size_t> index;
};

/// Parameters that say how a row came about, not what was asked for: rows match whatever they are.
bool is_dependent(const std::string& parameter);

/// Which hosts the runs of reports are of: each set once.
using HostSets = std::set<std::vector<std::string>>;
HostSets host_sets(const std::vector<LoadedReport>& reports);

/// Whether runs of different hosts are on this side, so that rows have to be told apart by them.
bool has_several_hosts(const std::vector<LoadedReport>& reports);

/// Whether rows of BASE and NEW match by host too: if runs of different hosts are on a side. Not if
/// all of NEW is of one set of hosts of which BASE knows none: such names change from run to run,
/// as those of pods do, and tell nothing.
bool matches_by_host(const HostSets& base, const HostSets& other);
bool matches_by_host(const std::vector<LoadedReport>& base, const std::vector<LoadedReport>& other);

/// What tells the rows of a report apart, their hosts among it.
std::set<std::string> row_keys(const Report& report);

/// Which transports carried the rows of all sides that are compared: a row by shm is not that of
/// the network. Reports of older versions do not tell; their rows match whatever there is, unless
/// rows of several transports are candidates.
class CarriersOfRows {
public:
  void learn(const std::vector<LoadedReport>& reports);
  /// What tells the row apart from others with this key; "" if nothing has to.
  std::string of(const std::string& key, const ResultRow& row) const;

private:
  std::map<std::string, std::set<std::string>> known_; ///< by key without hosts
};

/// @param carriers has learnt the reports of all sides
Side side_of(const std::vector<LoadedReport>& reports, bool by_host,
             const CarriersOfRows& carriers);
/// Of a side by itself.
Side side_of(const std::vector<LoadedReport>& reports, bool by_host);

} // namespace shmemctl
