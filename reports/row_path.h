// Who sends to whom in a result row, and what carries it: key "path".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace shmemctl {

/// One end of a path.
struct PathEnd {
  int pe = 0;
  std::string host;
  std::optional<int> node = std::nullopt; ///< its node's number, where the host name does not tell
};

/// What a measurement went over. Transports and NICs are those that were used, not those that were
/// available.
struct RowPath {
  std::optional<PathEnd> first, second; ///< the pair; nothing where many PEs send
  std::vector<std::string> transports;  ///< sorted: "shm", "libfabric"
  std::vector<std::string> nics;        ///< of the PEs that issue: "eth0", "mlx5_0", "mlx5_1:2"
};

/// "PE 0 (a) -> PE 2 (b) by libfabric eth0"; without a pair "by libfabric eth0, shm". Strings are
/// as they came: a reader of a foreign report prints safe_text() of it.
std::string to_text(const RowPath& path);

nlohmann::json to_json(const RowPath& path);
/// Of a document that the schema allows.
RowPath row_path_from_json(const nlohmann::json& object);

} // namespace shmemctl
