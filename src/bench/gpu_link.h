// The limit of what GPUs of one machine move: NVLink, the slower of two PCIe links, their own
// memory, or, where the heap is memory of the host, their links to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/bench/bandwidth_limit.h"
#include "src/bench/case.h"
#include "src/topo/node.h"

namespace shmemctl::bench {

/// What moves from one GPU to another in one direction, in 10^9 bytes per second: "NVLink, 18 links
/// of 26.562 GB/s"; "PCIe, 16 lanes of 32 GT/s". Nothing where the model does not know it, or for
/// one GPU and itself.
/// @param from,to PCI addresses
std::optional<LinkLimit> gpu_link(const Node& node, const std::string& from, const std::string& to);

/// What a GPU moves to, or from, all of `others` together. Nothing where the model does not know
/// one of them, where there is none, or where several are linked one to one.
std::optional<LinkLimit> gpu_links_limit(const Node& node, const std::string& gpu,
                                         const std::vector<std::string>& others);

/// Of a PE's GPU.
struct GpuSeatPlace {
  std::uint64_t machine_id = 0;
  std::string pci_address; ///< "": none
  double memory_GBps = 0;  ///< of its own memory, reads and writes together; 0: not known
  /// What this PE sends at the point goes from memory of a GPU straight to memory of a GPU.
  bool between_gpus = true;
  /// ... from and to a heap in memory of the host, by the GPU's loads and stores.
  bool in_host_memory = false;
  std::string otherwise = {}; ///< where neither is so: by what, "no limit is known for ..."
};
/// Of all GPUs of a point that send together, each over its own links once, however many PEs it
/// has; or of all that receive, if that is less; gets take as much the other way. Where all
/// traffic stays on its PEs' own GPU, of these GPUs' memory, of which each byte takes a read and a
/// write. Where the heap is memory of the host, of the links to it of all GPUs that send. The
/// reason for collectives, several machines, traffic that takes a network or the host's processors,
/// traffic of which some leaves its GPU and some does not, GPUs that are linked one to one where
/// one sends to several, and what the model does not know.
/// @param node of the machine @param by_pe the GPU of each PE
FoundLimit gpu_link_limit(const Node& node, const Point& point,
                          const std::vector<GpuSeatPlace>& by_pe);

/// Of a collective of all PEs: of the memory of the one GPU that all share; of the links of all
/// GPUs together, of the root's where only that has to send; of their links to the host. A share
/// counts limited_bytes().
FoundLimit gpu_collective_limit(const Node& node, const LeastTraffic& traffic,
                                const std::vector<GpuSeatPlace>& by_pe);
/// What of it that limit is about: what crosses links; half of what memory reads and writes; over
/// links to the host, what is read or what is written, whichever is more.
double limited_bytes(const LeastTraffic& traffic, const LinkLimit& limit);
/// By PE: the number of its GPU, from 0 in the order of the PEs.
std::vector<int> gpu_numbers(const std::vector<GpuSeatPlace>& by_pe);

} // namespace shmemctl::bench
