// The NICs and transports that a rank chose, from the lines in which its libraries report them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/model/topo/pci_address.h"

namespace shmemctl::explain {

/// A line of a log.
struct Place {
  std::size_t file = 0; ///< position among the files
  std::uint64_t line = 0;
};

/// One path (transport and device) that a rank uses.
struct Choice {
  std::string library;                ///< "NCCL", "NVSHMEM", "UCX", "libfabric", "Open MPI", ...
  std::string transport;              ///< "NET/IB", "P2P/CUMEM", "ibrc", "rc_mlx5", "efa"
  std::string device;                 ///< "mlx5_0"; "device 3" if unnamed; "" if it uses none
  std::optional<int> port, gid_index; ///< empty if the log does not say
  std::optional<int> number;          ///< number of the device in the library's list
  std::string link;                   ///< "RoCE", "IB"; "" if the log does not say
  std::optional<bool> gpu_direct;     ///< whether the NIC reaches the GPU's memory
  std::optional<int> by_rank;         ///< the rank that owns the NIC, if not this rank (PXN)
  Place first;
  std::uint64_t lines = 0; ///< lines that name it: channels, connections
};

/// A network device in a library's own numbering.
struct ListedDevice {
  std::string name;
  std::optional<int> port;
  std::string link;
};

/// The identity and the choices of a process, as far as its lines report them.
struct ProcessSetup {
  std::optional<int> rank;   ///< in the largest communicator, or the PE
  std::optional<int> nranks; ///< ranks of that communicator
  std::optional<PciAddress> gpu;
  std::optional<int> cuda_device;
  std::string network; ///< NCCL: "IB", "Socket", ...
  std::map<int, ListedDevice> nccl_devices;
  std::map<int, int> gid_by_nccl_device;
  std::map<int, std::string> nvshmem_names;    ///< device id -> name
  std::map<int, ListedDevice> nvshmem_devices; ///< in the order of assignment
  std::string nvshmem_transport;
  /// UCX: (device, port) -> index in the port's table of GIDs.
  std::map<std::pair<std::string, int>, int> gid_by_ucx_port;
  /// The GID index if the user set it; NVSHMEM does not log an index that it chose itself.
  std::optional<int> nvshmem_gid;
  bool uses_efa = false; ///< according to a line of libfabric's provider
  std::vector<Choice> choices;
};

/// Literals of which every relevant line contains at least one; other lines are not read.
const std::vector<std::string>& choice_words();

/// Reads a line that contains words of choice_words().
/// @param body  the line without the launcher's prefix
/// @param seen  bit i is set if it contains choice_words()[i]
void read_choice(std::string_view body, std::uint64_t seen, const Place& place,
                 ProcessSetup& setup);

/// Completes the choices at the end: names devices and transports whose lines precede the lines
/// that list them or are those of another writer, and adds the GIDs that other lines report.
void name_devices(ProcessSetup& setup);

} // namespace shmemctl::explain
