// Numbers for ordered pairs, of PEs or of GPUs, that a report holds as rows or as a matrix.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace shmemctl {

struct PairCell {
  std::size_t row = 0, column = 0;
  std::optional<double> value; ///< nothing: it failed
};

struct PairMatrix {
  std::string title;  ///< "put traffic=pair size=1M, bandwidth"; as the document has it
  std::string unit;   ///< "GB/s", "us"
  std::string row_is; ///< what a row is: "from PE", "PE that waits"
  std::string column_is;
  bool low_is_bad = false;         ///< bandwidths; times are bad if they are high
  bool of_median = false;          ///< what is bad is told by the median; else by the largest
  std::vector<std::string> labels; ///< of rows and of columns, in natural order
  std::vector<PairCell> cells;     ///< of pairs that are known, none of them with itself
};

/// Parameters that name the two of a pair.
struct PairNames {
  const char *source, *target;
  const char* kind; ///< "PE", "GPU"
};
/// Nothing of a row that is of no pair.
const PairNames* pair_names_of(const ResultRow& row);

/// Every matrix with at least three labels: of `bench --traffic matrix`, of copies between GPUs,
/// and of who waited for whom in `moe`.
std::vector<PairMatrix> pair_matrices(const Report& report);

} // namespace shmemctl
