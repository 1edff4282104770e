// Sentences about a report's `simulation`, shared by the text and the page. They are safe text.
// They do not blame one NIC if others carry the same load, and do not report differences that may
// be due to chance.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shmemctl::simulation {

/// The member, 0 if it is missing.
double number_of(const nlohmann::json& object, const char* key);

/// "246.1 us", "246.1 +- 0.4 us".
std::string time_text(const nlohmann::json& estimate);

/// "79.59 MB".
std::string megabytes(double size_bytes);

/// "node 0 mlx5_0/1".
std::string nic_name(const nlohmann::json& nic);

/// The variant's last operation: the whole step.
const nlohmann::json& step_of(const nlohmann::json& variant);

/// "busiest NIC: node 0 mlx5_0/1, 79.59 MB a step, 2 times the even share; 3218 +- 3.1 us a step,
/// limited by node 0 mlx5_0/1 out": of the first variant.
std::string verdict_text(const nlohmann::json& simulation);

/// How the best mapping and the changes affect a step's time: "the mapping is the best one".
std::vector<std::string> ratio_lines(const nlohmann::json& simulation);

/// A line for each port in `taken_over`: "node 1 mlx5_0/1 is killed: PE 0 uses mlx5_1/1, as PE 1
/// does".
std::vector<std::string> takeover_lines(const nlohmann::json& simulation);

} // namespace shmemctl::simulation
