#include "src/runtime/moe/moe_path.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/model/moe/plan.h"

namespace shmemctl::moe {

MoePath choose_moe_path(const ExchangeConfig& config, const std::vector<KernelPath>& paths) {
  if (config.n_nodes() > 1)
    return {config.mode, config.node_ranks};
  const bool takes_network = std::any_of(paths.begin(), paths.end(), [](const KernelPath& path) {
    return path.path == DevicePath::proxy || path.path == DevicePath::ibgda;
  });
  return {config.mode, takes_network || config.shape.n_ranks > max_ranks_of_kernels ? 1 : 0};
}

std::string unreachable_rank(const MoePath& path, int pe, const std::vector<KernelPath>& paths) {
  // Internode low latency sends each row straight to its rank; no rank forwards rows of another
  // one.
  const std::int32_t node_ranks =
      path.is_internode() && path.is_low_latency() ? 1 : path.node_ranks;
  for (std::size_t peer = 0; peer < paths.size(); ++peer) {
    const bool same_node =
        node_ranks == 0 || node_of(pe, node_ranks) == node_of(static_cast<int>(peer), node_ranks);
    if (same_node && paths[peer].path != DevicePath::load_store)
      return fmt::format("kernels cannot load from and store to PE {}: {}", peer,
                         paths[peer].reason);
    if (paths[peer].path == DevicePath::none)
      return fmt::format("kernels cannot reach PE {}: {}", peer, paths[peer].reason);
  }
  return "";
}

} // namespace shmemctl::moe
