#include <algorithm>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/topo/distance.h"
#include "src/topo/readers/nvidia_smi_text.h"

namespace shmemctl::smi {

namespace {

constexpr const char* fix_text = "give the whole output of: nvidia-smi topo -m";

/// What one cell was read as, and where.
struct Cell {
  Distance distance;
  std::size_t line = 0; ///< 0: not in the text
};

/// GPUs first; titles of columns, then labels that only rows have (a copy that lost columns).
std::vector<std::string> labels_of(const Table& table) {
  std::vector<std::string> all = table.columns;
  for (const Row& row : table.rows)
    if (std::find(table.columns.begin(), table.columns.end(), row.label) == table.columns.end())
      all.push_back(row.label);
  std::stable_partition(all.begin(), all.end(), is_gpu_label);
  return all;
}

class SquareBuilder {
public:
  SquareBuilder(const Table& table, const std::string& subject)
      : table_(table), subject_(subject), labels_(labels_of(table)),
        cells_(labels_.size(), std::vector<Cell>(labels_.size())) {
    for (std::size_t i = 0; i < labels_.size(); ++i)
      position_[labels_[i]] = i;
    untitled_.insert(labels_.begin(), labels_.end());
    for (const std::string& title : table_.columns)
      untitled_.erase(title);
  }

  Square build() {
    for (const Row& row : table_.rows) {
      any_nic_row_ = any_nic_row_ || !is_gpu_label(row.label);
      place(row);
    }
    Square square;
    square.labels = labels_;
    square.cells.assign(labels_.size(), std::vector<Distance>(labels_.size()));
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      square.cells[i][i] = Distance{PathClass::self, 0, ""};
      for (std::size_t j = 0; j < i; ++j)
        square.cells[i][j] = square.cells[j][i] = merged(i, j);
    }
    if (lost_ > 0)
      square.notes.push_back(std::to_string(lost_) + " distances between NICs are not in the text");
    if (mirrored_ > 0)
      square.notes.push_back(std::to_string(mirrored_) +
                             " cells are missing and were taken from the other half of the matrix");
    return square;
  }

private:
  void place(const Row& row) {
    const std::size_t i = position_.at(row.label);
    for (std::size_t column = 0; column < row.cells.size(); ++column) {
      const std::size_t j = position_.at(table_.columns[column]);
      const bool self = row.cells[column].path == PathClass::self;
      if (self != (i == j))
        throw error(row.line, self ? "row " + row.label + " has its X in the column of " +
                                         table_.columns[column]
                                   : "row " + row.label + " has " + to_string(row.cells[column]) +
                                         " where its X must be");
      cells_[i][j] = Cell{row.cells[column], row.line};
    }
  }

  Distance merged(std::size_t i, std::size_t j) {
    const Cell& one = cells_[i][j];
    const Cell& other = cells_[j][i];
    if (one.line == 0 && other.line == 0)
      return missing(i, j);
    if (one.line == 0 || other.line == 0)
      ++mirrored_;
    const bool both = one.line > 0 && other.line > 0 && one.distance.path && other.distance.path;
    if (both && !(one.distance == other.distance))
      throw error(one.line, "the matrix contradicts itself: " + labels_[i] + "-" + labels_[j] +
                                " reads " + to_string(one.distance) + ", " + labels_[j] + "-" +
                                labels_[i] + " in line " + std::to_string(other.line) + " reads " +
                                to_string(other.distance));
    return one.line > 0 && (one.distance.path || other.line == 0) ? one.distance : other.distance;
  }

  /// Only two NICs may lack a distance (no mapping depends on it), and only where the text lost
  /// the columns of both or the rows of all.
  Distance missing(std::size_t i, std::size_t j) {
    const bool columns_lost = untitled(i) && untitled(j);
    const bool rows_lost = !any_nic_row_ && !is_gpu_label(labels_[i]) && !is_gpu_label(labels_[j]);
    if (!columns_lost && !rows_lost)
      throw missing_cell(i, j);
    ++lost_;
    return Distance{std::nullopt, 0, "not in the text"};
  }

  Error missing_cell(std::size_t i, std::size_t j) const {
    if (line_of(i) == 0 && line_of(j) == 0)
      return error(table_.header_line,
                   "the rows of " + labels_[i] + " and " + labels_[j] + " are missing");
    const std::size_t cut = line_of(i) > 0 ? i : j;
    const std::size_t other = cut == i ? j : i;
    return error(line_of(cut),
                 "the cell of " + labels_[cut] + " and " + labels_[other] + " is missing" +
                     (line_of(other) == 0 ? ", and so is the row of " + labels_[other] : ""));
  }

  bool untitled(std::size_t index) const { return untitled_.count(labels_[index]) != 0; }

  std::size_t line_of(std::size_t index) const {
    for (const Row& row : table_.rows)
      if (row.label == labels_[index])
        return row.line;
    return 0;
  }

  Error error(std::size_t line, const std::string& problem) const {
    return input_error(subject_, "line " + std::to_string(line), problem, fix_text);
  }

  const Table& table_;
  const std::string& subject_;
  std::vector<std::string> labels_;
  std::map<std::string, std::size_t> position_;
  std::vector<std::vector<Cell>> cells_;
  std::set<std::string> untitled_; ///< labels that only rows have
  bool any_nic_row_ = false;
  std::size_t mirrored_ = 0;
  std::size_t lost_ = 0;
};

} // namespace

Square square_of(const Table& table, const std::string& subject) {
  return SquareBuilder(table, subject).build();
}

} // namespace shmemctl::smi
