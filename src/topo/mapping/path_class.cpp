#include "src/topo/mapping/nvshmem.h"

namespace shmemctl {

PathClass nvshmem_path_class(const std::string& gpu_path, const std::string& nic_path,
                             bool numa_equal) {
  int depth = 0;
  int score = 0;
  bool same = true;
  for (std::size_t i = 0; i < gpu_path.size(); ++i) {
    same = same && i < nic_path.size() && nic_path[i] == gpu_path[i];
    if (gpu_path[i] != '/')
      continue;
    ++depth;
    score += same ? 1 : 0;
  }
  if (score <= 3)
    return numa_equal ? PathClass::node : PathClass::sys;
  // Before PIX: a GPU only four levels deep can never be PIX.
  if (score == 4)
    return PathClass::phb;
  return score == depth - 1 ? PathClass::pix : PathClass::pxb;
}

} // namespace shmemctl
