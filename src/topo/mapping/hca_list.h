// NVSHMEM_HCA_LIST and NVSHMEM_HCA_PE_MAPPING: parsed exactly as NVSHMEM does.
#pragma once

#include <string>
#include <vector>

namespace shmemctl {

/// One entry of a list as NVSHMEM understands it.
struct HcaListEntry {
  std::string name;
  int port = -1;          ///< -1: every port
  int count = 1;          ///< replicas (HCA_PE_MAPPING only)
  std::size_t column = 0; ///< from 1, in the user's string
  std::string text;       ///< the entry as written
};

/// What a careful reader would object to, with its column; NVSHMEM itself accepts these silently.
struct HcaListProblem {
  std::size_t column = 0; ///< from 1
  std::string text;       ///< the entry as written
  std::string problem;
};

struct HcaList {
  bool exclude = false; ///< began with ^ (meaningful for HCA_LIST only)
  std::vector<HcaListEntry> entries;
  std::vector<HcaListProblem> problems;
};

/// @param capacity entries beyond it are dropped and the last accepted one loses its count:
///                 48 for HCA_LIST (16 before 3.3.9), 32 for HCA_PE_MAPPING
/// Never throws; any bytes give some list (research: "Lists: exact semantics").
HcaList parse_hca_list(const std::string& text, std::size_t capacity);

} // namespace shmemctl
