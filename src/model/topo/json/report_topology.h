// The key `topology` of a report: GPUs, NICs and the distance matrix, and the complete node.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/model/topo/json/json_fields.h"
#include "src/model/topo/node.h"

namespace shmemctl::model_json {

/// All keys of a node but `model`: gpus, nics, other_nics, distances, notes and so on.
nlohmann::json contract_json(const Node& node);

/// A node from these keys, without `model`: PCI functions without a tree above them, the report's
/// distances as a recorded matrix. Throws Error (usage) with the JSON pointer of a missing or
/// mistyped value.
Node node_from_contract(const nlohmann::json& topology, const JsonPath& json_path,
                        const std::string& subject);

/// More devices than any node has; a matrix has at most the square of this number of cells.
inline constexpr std::size_t max_listed_devices = 1024;

/// {"matrix": [["X", "PIX", null], ...], "unknown": [{"reason": ..., "cells": [[0, 2], ...]}]} of
/// the rows and columns `devices`.
nlohmann::json matrix_json(const DistanceMatrix& matrix, const std::vector<std::size_t>& devices);

/// The reverse. Throws Error (usage) with the pointer if it is not square with `size` rows, or a
/// cell is not one of nvidia-smi's values.
DistanceMatrix matrix_from_json(const nlohmann::json& object, const JsonPath& json_path,
                                std::size_t size, const std::string& subject);

} // namespace shmemctl::model_json
