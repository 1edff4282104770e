// Mock machines, stated by sysfs paths, for the tests of NVSHMEM's choice.
#pragma once

#include <string>
#include <vector>

#include "src/model/topo/mapping/mapping.h"

namespace shmemctl {

/// Builds a Node whose GPUs and NICs have the sysfs paths that the test states.
class Machine {
public:
  /// A PCIe switch below a root port of its own host bridge: the path of its upstream port. Every
  /// call gives another host bridge.
  std::string add_switch();

  /// Below a switch: behind a downstream port of its own. `numa` < 0: the kernel says -1.
  void add_gpu(const std::string& below, int numa);
  void add_nic(const std::string& below, int numa, const std::string& name = "", int ports = 1);
  /// Adds a GPU at exactly this path.
  void add_gpu_at(const std::string& path, int numa);
  void add_nic_at(const std::string& path, int numa, const std::string& name = "", int ports = 1);
  /// Gives the newest NIC a data-direct function below a switch.
  void add_data_direct(const std::string& below, int numa);

  Node node;

private:
  int add_pci(const std::string& path, int numa);
  std::string next_slot(const std::string& below);
  int switches_ = 0;
  int slots_ = 0;
};

/// `switches` switches, each with `gpus` GPUs and `nics` NICs; the first half on NUMA node 0. All
/// NICs are named mlx5_0, mlx5_1, ... in order.
Machine switched_machine(int switches, int gpus, int nics);

struct Ask {
  NvshmemVersion version = {3, 5, 0};
  bool mapping = false;
  std::string hca_list = "unset", hca_pe_mapping = "unset";
  World world = World::node;
  NvshmemTransport transport = NvshmemTransport::ibrc;
  std::vector<int> gpus = {}; ///< empty: one PE per GPU
};
MappingRequest request_for(const Node& node, const Ask& ask);

/// Per PE the rows of the device table that were chosen; a NIC's replicas cannot be told apart, so
/// that the lowest of them stands for all.
using Answer = std::vector<std::vector<int>>;
Answer rows_of(const Node& node, const Ask& ask);
/// Per PE the number of the first chosen NIC in Node::nics, -1 if none.
std::vector<int> first_nics(const Node& node, const Ask& ask);

/// One row for each PE: {0, 3} is [0][3].
Answer singles(const std::vector<int>& rows);

/// The newest release of a family.
NvshmemVersion newest(ReleaseFamily family);
inline const std::vector<ReleaseFamily> all_families = {
    ReleaseFamily::v1_0,  ReleaseFamily::v2_0, ReleaseFamily::v2_4, ReleaseFamily::v2_5,
    ReleaseFamily::v2_11, ReleaseFamily::v3_5, ReleaseFamily::v3_7};
inline const std::vector<ReleaseFamily> families_since_2_4 = {
    ReleaseFamily::v2_4, ReleaseFamily::v2_5, ReleaseFamily::v2_11, ReleaseFamily::v3_5,
    ReleaseFamily::v3_7};

} // namespace shmemctl
