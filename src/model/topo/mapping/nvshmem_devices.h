// NVSHMEM's releases, HCA lists and table of devices, and its choice of rows of that table for each
// PE (nvshmem_balance.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/model/topo/node.h"

namespace shmemctl {

/// One entry of a list as NVSHMEM understands it.
struct HcaListEntry {
  std::string name;
  int port = -1;          ///< -1: every port
  int count = 1;          ///< replicas (HCA_PE_MAPPING only)
  std::size_t column = 0; ///< from 1, in the user's string
  std::string text;       ///< the entry as written
};

/// A mistake in a list, with its column; NVSHMEM itself accepts these silently.
struct HcaListProblem {
  std::size_t column = 0; ///< from 1
  std::string text;       ///< the entry as written
  std::string problem;
};

struct HcaList {
  bool exclude = false; ///< the list began with ^ (has a meaning for HCA_LIST only)
  std::vector<HcaListEntry> entries;
  std::vector<HcaListProblem> problems;
};

/// @param capacity entries beyond it are dropped and the last accepted one loses its count:
///                 48 for HCA_LIST (16 before 3.3.9), 32 for HCA_PE_MAPPING
/// Never throws; any bytes give some list. The syntax is NVSHMEM's own: names are compared exactly,
/// a missing port means all ports, numbers are read as strtol() reads them, a leading ^ excludes
/// all entries, and an empty list allows everything (docs/explanation/mapping.md).
HcaList parse_hca_list(const std::string& text, std::size_t capacity);

struct NvshmemVersion {
  int major = 3, minor = 7, patch = 0;
  auto operator<=>(const NvshmemVersion&) const = default;
};
std::optional<NvshmemVersion> parse_nvshmem_version(std::string_view text); ///< "3.4.5", "2.11"
std::string to_string(const NvshmemVersion& version);

/// Releases that choose NICs by the same rules, named by the first of them
/// (docs/explanation/mapping.md).
enum class ReleaseFamily {
  v1_0,  ///< 1.0, 1.1: the nearest row for each PE, no balancing
  v2_0,  ///< 2.0 to 2.3: greedy, PE by PE; less used rows first among equally near ones
  v2_4,  ///< 2.4: sorted pairs and balancing that considers the pairs of other PEs
  v2_5,  ///< 2.5 to 2.10: sorted pairs and balancing
  v2_11, ///< 2.11 to 3.4: several rows per PE, balanced by slot number instead of PE
  v3_5,  ///< 3.5, 3.6: several rows per PE, balanced
  v3_7,  ///< since 3.7: as 3.5, or over all GPUs of the node with NETDEVS_POLICY
};
/// The letter of the report's key `generation`: A, B, C0, C1, D, E, F in the order above.
const char* generation_letter(ReleaseFamily family);
ReleaseFamily family_of(const NvshmemVersion& version);
/// The newest known release of each family, oldest first.
std::vector<NvshmemVersion> representative_versions();
/// Whether the release is newer than all with known rules; it is then simulated by the rules of the
/// newest.
bool is_newer_than_known(const NvshmemVersion& version);

enum class NvshmemTransport { none, ibrc, ibdevx, ibgda, libfabric, ucx };
/// The transport of a value of REMOTE_TRANSPORT as parse_remote_transport() returns it;
/// NvshmemTransport::none for any other value.
NvshmemTransport transport_of_name(std::string_view name);

/// The values of the variables that affect the mapping.
struct NvshmemSettings {
  NvshmemVersion version;
  /// Origin of the version if nobody asked for it: "loaded by PID 4000".
  std::string version_source;
  /// The transport whose devices are mapped: IBGDA if it is enabled, else `proxy_transport`.
  NvshmemTransport transport = NvshmemTransport::ibrc;
  NvshmemTransport proxy_transport = NvshmemTransport::ibrc; ///< REMOTE_TRANSPORT
  std::string unknown_transport; ///< REMOTE_TRANSPORT as written, if NVSHMEM does not know it
  std::optional<std::string> hca_list, hca_pe_mapping, hca_prefix;
  bool enable_nic_pe_mapping = false;
  bool ibgda_multi_port = false;
  bool disable_data_direct = false;
  std::string netdevs_policy = "AUTO"; ///< since 3.7
  /// Whether `proxy_transport` is libfabric because none is set and ibrc, NVSHMEM's default, has no
  /// device.
  bool libfabric_assumed = false;
};

/// Whether the option HCA_PREFIX exists: since 3.4.5.
bool has_hca_prefix(const NvshmemVersion& version);
/// Whether the option NETDEVS_POLICY exists: since 3.7.
bool has_netdevs_policy(const NvshmemVersion& version);
/// The value of NETDEVS_POLICY with which each PE chooses as if all GPUs of the node were in its
/// world: all PEs compute the same assignment, whatever worlds they are in.
inline constexpr const char* exclusive_netdevs_policy =
    "EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE";

/// One device as the verbs library enumerates it.
struct HcaPortFacts {
  int number = 1;
  bool active = true;
  LinkLayer link_layer = LinkLayer::infiniband;
};
struct HcaFacts {
  std::string name; ///< "" if unknown: then no prefix refuses it (DeviceTable::undecided)
  std::vector<HcaPortFacts> ports;
  bool mlx5 = true; ///< has what IBGDA and IBDEVX need
};

/// Row of NVSHMEM's device table: device and port; replicas are consecutive rows.
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
  bool pe_mapping_ignored = false;     ///< both lists are set, or the release never reads it
  bool overruns = false;               ///< more rows than NVSHMEM's arrays hold (32)
  std::string undecided; ///< why the rows cannot be determined (then the table is empty); else ""
};
/// The table of devices that NVSHMEM considers, in its order: every active port of every device
/// that the transport accepts, filtered by HCA_LIST or HCA_PE_MAPPING; for libfabric, the first
/// port of every device, unfiltered; for UCX or no transport, nothing.
DeviceTable build_device_table(const std::vector<HcaFacts>& devices,
                               const NvshmemSettings& settings);

/// NVSHMEM's path class of a GPU and a NIC: it compares their sysfs paths character by character
/// and counts the slashes of the common part, so that neither PCI switches nor names matter.
/// @param numa_equal the numa_node files read the same (-1 and -1 do)
PathClass nvshmem_path_class(const std::string& gpu_path, const std::string& nic_path,
                             bool numa_equal);

/// Chooses rows of the device table for each local PE.
/// @param table_size  n, the number of rows of the device table
/// @param classes     [pe][row], each of pix, pxb, phb, node, sys
/// @return per PE the row indices in slot order; empty if it gets none
std::vector<std::vector<int>> choose_rows(ReleaseFamily family, int table_size,
                                          const std::vector<std::vector<PathClass>>& classes,
                                          bool enable_nic_pe_mapping);
/// Since 3.7 with NETDEVS_POLICY=EXTERNAL_SHARING_PCIE_SWITCH_NIC_EXCLUSIVE: the same algorithm
/// over all GPUs of the node; each PE then gets the rows of its GPU.
/// @param classes_of_gpus [gpu][row] for every GPU of the node, by bus-id string
/// @param gpu_of_pe       index into `classes_of_gpus`
std::vector<std::vector<int>>
choose_rows_exclusive(int table_size, const std::vector<std::vector<PathClass>>& classes_of_gpus,
                      const std::vector<int>& gpu_of_pe, bool enable_nic_pe_mapping);

} // namespace shmemctl
