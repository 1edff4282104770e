// The text of `nvidia-smi topo -m|-mp`, taken apart but not yet understood.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/topo/node.h"

namespace shmemctl::smi {

/// More devices than this in one matrix are refused.
inline constexpr std::size_t max_devices = 512;

/// One row: the device, its cells, and what stands behind them.
struct Row {
  std::size_t line = 0; ///< from 1
  std::string label;    ///< "GPU0", "NIC3", "mlx5_0"
  std::vector<Distance> cells;
  std::string cpus; ///< as written; "" if there is none
  std::string numa;
};

struct Table {
  std::size_t header_line = 0;
  std::vector<std::string> columns; ///< device titles
  std::vector<Row> rows;
  std::map<std::string, std::string> names; ///< NIC legend: title -> device name
  std::vector<std::string> notes;
};

/// True for "GPU0", "GPU12".
bool is_gpu_label(const std::string& label);
/// True for "NIC0", "NIC12".
bool is_nic_label(const std::string& label);

/// Finds the first matrix in any surrounding text and splits it. Throws Error (usage) with the line
/// if there is none, or if a cell is no word of the matrix.
Table split_table(const std::string& text, const std::string& subject);

/// The rows and columns as one square matrix over `labels`: cells that one half lacks are taken
/// from the other. Throws Error (usage) with the line for a row that does not fit its header, for a
/// cell that neither half has, and for two halves that contradict each other.
struct Square {
  std::vector<std::string> labels; ///< GPUs first, each group in the table's order
  DistanceMatrix cells;
  std::vector<std::string> notes;
};
Square square_of(const Table& table, const std::string& subject);

} // namespace shmemctl::smi
