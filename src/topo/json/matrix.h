// Distance matrices in JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/topo/json/place.h"
#include "src/topo/node.h"

namespace shmemctl::model_json {

/// More devices than any node has; a matrix has this squared cells at most.
inline constexpr std::size_t most_devices = 1024;

/// {"matrix": [["X", "PIX", null], ...], "unknown": [{"reason": ..., "cells": [[0, 2], ...]}]} of
/// the rows and columns `devices`.
nlohmann::json matrix_json(const DistanceMatrix& matrix, const std::vector<std::size_t>& devices);

/// The reverse. Throws Error (usage) with the pointer if it is not square with `size` rows, or a
/// cell is no word of nvidia-smi's.
DistanceMatrix matrix_from_json(const nlohmann::json& object, const Place& place, std::size_t size,
                                const std::string& subject);

} // namespace shmemctl::model_json
