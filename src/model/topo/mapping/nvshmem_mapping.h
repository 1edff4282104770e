// A node's mapping by NVSHMEM's rules; which rules a release has.
#pragma once

#include <cstddef>
#include <string>

#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/mapping/nvshmem_devices.h"

namespace shmemctl {

// Changes of NVSHMEM's device table from release to release.

/// Entries that NVSHMEM_HCA_LIST can hold: 48, before 3.3.9 16.
std::size_t hca_list_capacity(const NvshmemVersion& version);
/// Entries that NVSHMEM_HCA_PE_MAPPING can hold: 32 in every release.
std::size_t hca_pe_mapping_capacity();
/// 2.9 and 2.10 parse HCA_PE_MAPPING from the string of HCA_LIST, so that it never takes effect.
bool ignores_hca_pe_mapping(const NvshmemVersion& version);
/// Whether Ethernet ports (RoCE) are accepted: since 2.0.
bool accepts_ethernet(const NvshmemVersion& version);
/// Whether the distance is that of the NIC's data-direct function, if it has one: since 3.4.5.
bool uses_data_direct_path(const NvshmemVersion& version);
/// Whether libfabric drives all NICs that were chosen for a PE, up to 16: since 3.6.5.
bool libfabric_uses_all(const NvshmemVersion& version);
/// Whether the release ships this transport.
bool has_transport(const NvshmemVersion& version, NvshmemTransport transport);

/// What a device's name must contain for IBGDA and IBDEVX, as HCA_PREFIX writes it: "mlx5", or
/// "^smi" for names that do not contain "smi" (that meaning of ^, and that default, since 3.5.19;
/// before 3.4.5 the setting does not exist).
std::string effective_hca_prefix(const NvshmemSettings& settings);
bool accepts_name(const NvshmemSettings& settings, const std::string& device_name);

/// The devices as the verbs library would enumerate them, with the Node::nics index of each.
struct Enumeration {
  std::vector<HcaFacts> devices;
  std::vector<int> nics;
};
/// NICs without RDMA are excluded. A NIC without port data in the source has port 1, active; an
/// unknown port state or link layer is accepted, as NVSHMEM does.
Enumeration enumerate_hcas(const Node& node);

} // namespace shmemctl
