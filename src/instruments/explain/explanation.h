// The result of reading logs, as findings and as the report's section `logs`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/instruments/explain/catalogue.h"
#include "src/instruments/explain/log_scan.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/node.h"

namespace shmemctl::explain {

/// The path of a choice's NIC to the rank's GPU in a topology.
struct ChosenDistance {
  std::size_t rank = 0, choice = 0; ///< positions in LogFacts::ranks and in its choices
  int nic = -1;                     ///< index in Node::nics
  int gpu = -1;                     ///< index in Node::gpus; -1: the log does not name the GPU
  Distance distance;
};

/// The choices whose NIC the node has, except NICs of another rank (PXN). Leaves out a rank on
/// another host than the node's, if both host names are known.
std::vector<ChosenDistance> distances_of(const LogFacts& facts, const Node& node);

/// A rank that, according to its log, uses none of the NICs that `topo` computes for its GPU.
struct MappingDifference {
  std::size_t rank = 0;            ///< position in LogFacts::ranks
  std::size_t choice = 0;          ///< its first choice that this library made
  std::string library;             ///< "NCCL", "NVSHMEM"
  int gpu = 0;                     ///< index in Node::gpus
  std::vector<int> used, computed; ///< indexes in Node::nics
};

/// The differences of the ranks on the node's host whose log names the GPU and a NIC. NCCL is
/// compared with the policy `nccl`, NVSHMEM with `nvshmem` and these settings. None for a library
/// if two ranks name the same GPU, or if the node model lacks what the computation needs.
std::vector<MappingDifference> mapping_differences_of(const LogFacts& facts, const Node& node,
                                                      const NvshmemSettings& settings);

/// A NIC that several ranks of a host share while other NICs of the host are idle.
struct LogHotSpot {
  std::string host, library, device;
  std::optional<int> port;
  std::vector<std::string> ranks; ///< names of ranks
  std::vector<std::string> idle;  ///< "mlx5_1", in the library's order
};

/// The hot spots by host and library. The devices are those that the library lists; if `node` is
/// given and is the same host, only those in its compute fabric.
std::vector<LogHotSpot> hot_spots_of(const LogFacts& facts, const Node* node);

/// A rank whose log lacks a step that other ranks have.
struct EarlyEnd {
  std::size_t rank = 0;                 ///< position in LogFacts::ranks
  std::size_t step = 0;                 ///< position in the catalogue: the first step that it lacks
  std::size_t with_step = 0, ranks = 0; ///< ranks with the step, and with any step
};

/// The ranks that lack a step which at least half of the ranks with steps have. Ranks without any
/// step are left out, because their library does not write these lines.
std::vector<EarlyEnd> early_ends_of(const LogFacts& facts, const Catalogue& catalogue);

/// The ranks, from 0 to the largest known number of ranks less 1, that have no line in the logs.
/// Empty unless more than half of these ranks have lines.
std::vector<int> ranks_without_lines(const LogFacts& facts);

/// All findings, the most severe first.
/// @param node  null if there is no topology to compare with
/// @param settings  NVSHMEM settings of the job, with which `topo` computes its NICs
Findings findings_of(const LogFacts& facts, const Catalogue& catalogue, const Node* node,
                     const NvshmemSettings& settings = {});

/// The report's `logs`.
nlohmann::json to_json(const LogFacts& facts, const Catalogue& catalogue, const Node* node);

} // namespace shmemctl::explain
