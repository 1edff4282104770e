#include <algorithm>
#include <map>
#include <utility>
#include <vector>

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
  }

  Square build() {
    for (const Row& row : table_.rows)
      place(row);
    Square square;
    square.labels = labels_;
    square.cells.assign(labels_.size(), std::vector<Distance>(labels_.size()));
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      square.cells[i][i] = Distance{PathClass::self, 0, ""};
      for (std::size_t j = 0; j < i; ++j)
        square.cells[i][j] = square.cells[j][i] = merged(i, j);
    }
    if (!lost_.empty())
      square.notes.push_back(told(lost_, "distances are not in the text and stay unknown"));
    if (!lost_nics_.empty())
      square.remarks.push_back(
          told(lost_nics_, "distances between NICs are not in the text and stay unknown"));
    if (!mirrored_.empty())
      square.notes.push_back(
          told(mirrored_, "cells are missing and were taken from the other half of the matrix"));
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
    if (one.line == 0 && other.line == 0) {
      const bool nics = !is_gpu_label(labels_[i]) && !is_gpu_label(labels_[j]);
      (nics ? lost_nics_ : lost_).emplace_back(j, i); // as in the upper half
      return Distance{std::nullopt, 0, "not in the text"};
    }
    if (one.line == 0)
      mirrored_.emplace_back(i, j);
    if (other.line == 0)
      mirrored_.emplace_back(j, i);
    const bool both = one.line > 0 && other.line > 0 && one.distance.path && other.distance.path;
    if (both && !(one.distance == other.distance))
      throw error(one.line, "the matrix contradicts itself: " + labels_[i] + "-" + labels_[j] +
                                " reads " + to_string(one.distance) + ", " + labels_[j] + "-" +
                                labels_[i] + " in line " + std::to_string(other.line) + " reads " +
                                to_string(other.distance));
    return one.line > 0 && (one.distance.path || other.line == 0) ? one.distance : other.distance;
  }

  /// "3 distances ... (GPU0-NIC1 in line 2, GPU1-NIC1 in line 3 and 1 more)"
  std::string told(const std::vector<std::pair<std::size_t, std::size_t>>& cells,
                   const std::string& what) const {
    constexpr std::size_t shown = 4;
    std::string text = std::to_string(cells.size()) + " " + what + " (";
    for (std::size_t at = 0; at < cells.size() && at < shown; ++at) {
      const std::size_t line = line_of(cells[at].first);
      text += (at > 0 ? ", " : "") + labels_[cells[at].first] + "-" + labels_[cells[at].second] +
              (line > 0 ? " in line " + std::to_string(line) : ", whose row is missing");
    }
    return text +
           (cells.size() > shown ? " and " + std::to_string(cells.size() - shown) + " more)" : ")");
  }

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
  std::vector<std::pair<std::size_t, std::size_t>> lost_, lost_nics_, mirrored_;
};

} // namespace

Square square_of(const Table& table, const std::string& subject) {
  return SquareBuilder(table, subject).build();
}

} // namespace shmemctl::smi
