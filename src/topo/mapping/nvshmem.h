// NVSHMEM's choice of NICs, simulated release by release.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/topo/mapping/hca_list.h"
#include "src/topo/node.h"

namespace shmemctl {

struct NvshmemVersion {
  int major = 3, minor = 7, patch = 0;
  auto operator<=>(const NvshmemVersion&) const = default;
};
std::optional<NvshmemVersion> parse_nvshmem_version(std::string_view text); ///< "3.4.5", "2.11"
std::string to_string(const NvshmemVersion& version);

/// Releases that choose alike (research table 6).
enum class Generation { A, B, C0, C1, D, E, F };
const char* to_string(Generation generation);
Generation generation_of(const NvshmemVersion& version);
/// The newest release of each generation that is known, oldest first.
std::vector<NvshmemVersion> representative_versions();
/// Newer than any release whose rules are known: it is simulated by those of the newest.
bool is_newer_than_known(const NvshmemVersion& version);

enum class NvshmemTransport { none, ibrc, ibdevx, ibgda, libfabric, ucx };
/// By a word of REMOTE_TRANSPORT, as parse_remote_transport() gives it; none for any other.
NvshmemTransport transport_of_word(std::string_view word);

/// The variables that matter, as values.
struct NvshmemSettings {
  NvshmemVersion version;
  /// Whose devices are mapped: IBGDA where it is enabled, else `proxy_transport`.
  NvshmemTransport transport = NvshmemTransport::ibrc;
  NvshmemTransport proxy_transport = NvshmemTransport::ibrc; ///< REMOTE_TRANSPORT
  std::string unknown_transport; ///< REMOTE_TRANSPORT as written, if NVSHMEM knows no such word
  std::optional<std::string> hca_list, hca_pe_mapping, hca_prefix;
  bool enable_nic_pe_mapping = false;
  bool ibgda_multi_port = false;
  bool disable_data_direct = false;
  std::string netdevs_policy = "AUTO"; ///< generation F
};

/// The option HCA_PREFIX exists: since 3.4.5.
bool has_hca_prefix(const NvshmemVersion& version);

/// One device as the verbs library enumerates it.
struct HcaPortFacts {
  int number = 1;
  bool active = true;
  LinkLayer link_layer = LinkLayer::infiniband;
};
struct HcaFacts {
  std::string name; ///< "" if it is not known: lists and prefixes cannot be held against it
  std::vector<HcaPortFacts> ports;
  bool mlx5 = true; ///< has what IBGDA and IBDEVX need
};

/// Row of NVSHMEM's device table (step 1): device and port; replicas are consecutive rows.
struct TableEntry {
  int device = 0; ///< index in the enumeration
  int port = 1;
};
/// Why a (device, port) is not in the table; port 0 is the whole device.
struct TableExclusion {
  int device = 0;
  int port = 0;
  std::string reason;
};
struct DeviceTable {
  std::vector<TableEntry> entries;
  std::vector<TableExclusion> exclusions;
  HcaList list;                        ///< the list that took effect, parsed
  std::string list_name;               ///< "HCA_LIST", "HCA_PE_MAPPING" or ""
  std::vector<HcaListEntry> unmatched; ///< entries that matched no device or port
  bool pe_mapping_ignored = false;     ///< both lists set, or a release that never reads it
  bool overruns = false;               ///< more rows than NVSHMEM's arrays hold (32)
  std::string undecided;               ///< why the rows cannot be told, and there are none; else ""
};
/// Step 1 (research section 1 and 2): which devices NVSHMEM considers, in its order.
DeviceTable build_device_table(const std::vector<HcaFacts>& devices,
                               const NvshmemSettings& settings);

/// Section 4: the class from two sysfs paths by counting the slashes they share. `numa_equal`:
/// the numa_node files read the same (-1 and -1 do).
PathClass nvshmem_path_class(const std::string& gpu_path, const std::string& nic_path,
                             bool numa_equal);

/// Steps 2 and 5: the answer for each local PE.
/// @param table_size  n, rows of the device table
/// @param classes     [pe][row], each of pix, pxb, phb, node, sys
/// @return per PE the row indices in slot order; empty if it gets none
std::vector<std::vector<int>> choose_rows(Generation generation, int table_size,
                                          const std::vector<std::vector<PathClass>>& classes,
                                          bool enable_nic_pe_mapping);
/// Generation F with NETDEVS_POLICY=EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE: the same core over
/// all GPUs of the node, then the answer of each PE's own GPU.
/// @param classes_of_gpus [gpu][row] for every GPU of the node, by bus-id string
/// @param gpu_of_pe       index into it
std::vector<std::vector<int>>
choose_rows_exclusive(int table_size, const std::vector<std::vector<PathClass>>& classes_of_gpus,
                      const std::vector<int>& gpu_of_pe, bool enable_nic_pe_mapping);

} // namespace shmemctl
