// Numbers for ordered pairs, of PEs, hosts or GPUs, that a report has as rows or as a matrix.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

struct PairCell {
  std::size_t row = 0, column = 0;
  std::optional<double> value; ///< empty: it failed
};

struct PairMatrix {
  std::string title;  ///< "put traffic=pair size=1M, bandwidth"; unescaped text of the report
  std::string unit;   ///< "GB/s", "us"
  std::string row_is; ///< what a row is: "from PE", "PE that waits"
  std::string column_is;
  bool low_is_bad = false;         ///< true for bandwidths; high times are bad
  bool of_median = false;          ///< the median decides what is bad; otherwise the largest value
  std::vector<std::string> labels; ///< labels of rows and of columns, in natural order
  std::vector<PairCell> cells;     ///< known pairs, never of an item with itself
};

/// Parameters that name the two members of a pair.
struct PairNames {
  const char *source, *target;
  const char* kind; ///< "PE", "GPU", "host"
};
/// Empty if the row is not of a pair.
const PairNames* pair_names_of(const ResultRow& row);

/// Every matrix with at least three labels: `bench --traffic matrix`, the hosts of `fabric`, copies
/// between GPUs, and which rank waited for which in `moe`.
std::vector<PairMatrix> pair_matrices(const Report& report);

} // namespace shmemctl
