// Reads the text of `nvidia-smi topo -m` into a Node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/model/topo/node.h"

namespace shmemctl::smi {

/// A matrix with more devices than this is refused.
inline constexpr std::size_t max_devices = 512;

/// The columns after the cells.
enum class Affinity { cpus, numa, gpu_numa };

/// One row: the device, its cells, and the columns after them.
struct Row {
  std::size_t line = 0; ///< from 1
  std::string label;    ///< "GPU0", "NIC3", "mlx5_0"
  std::vector<Distance> cells;
  std::map<Affinity, std::string> affinities; ///< as written; "" if the field is empty
  /// The number of fields after the cells differs from that of the titles: which field belongs to
  /// which title is unknown.
  bool affinities_damaged = false;
};

struct Table {
  std::size_t header_line = 0;
  std::vector<std::string> columns; ///< device titles
  std::vector<Affinity> affinities; ///< titles of the columns after the device titles
  std::vector<Row> rows;
  std::map<std::string, std::string> names; ///< NIC legend: title -> device name
  int nics_found = 0;                       ///< "4 NICs found in the topology, only displaying 2"
  std::size_t nics_found_line = 0;
  std::vector<std::string> notes;
};

/// The text without terminal control sequences and byte order marks, with every kind of blank (such
/// as a page's no-break spaces) as an ASCII blank. Line ends are unchanged.
std::string plain_text(std::string_view text);

/// True for "GPU0", "GPU12".
bool is_gpu_label(const std::string& label);
/// True for "NIC0", "NIC12".
bool is_nic_label(const std::string& label);

/// Finds the first matrix, whatever text is around it, and splits it into cells. Throws Error
/// (usage), which names a line, if there is none, or if a cell is no known connection.
Table split_table(const std::string& text, const std::string& subject);

/// The rows and columns as one square matrix over `labels`: a missing cell is taken from the cell
/// opposite to it across the diagonal, else it is unknown. Both are noted: the less a text
/// contains, the more is unknown. Throws Error (usage) with the line for a row that does not fit
/// its header, and for two halves that contradict each other.
struct Square {
  std::vector<std::string> labels; ///< GPUs first, each group in the table's order
  DistanceMatrix cells;
  std::vector<std::string> notes;
  /// Unknown distances: those between NICs that are not in the text.
  std::vector<std::string> remarks;
};
Square square_of(const Table& table, const std::string& subject);

} // namespace shmemctl::smi
