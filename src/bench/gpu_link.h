// The limit of a path between GPUs of one machine: NVLink, or the slower of two PCIe links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/bench/case.h"
#include "src/bench/link_limit.h"
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
};
/// Of all GPUs of a point that send together, each over its own links once, however many PEs it
/// has; or of all that receive, if that is less; gets take as much the other way. Where all
/// traffic stays on its PEs' own GPU, of these GPUs' memory, of which each byte takes a read and a
/// write. Nothing for collectives, several machines, traffic that takes a network or host memory,
/// traffic of which some leaves its GPU and some does not, or GPUs that are linked one to one where
/// one sends to several.
/// @param node of the machine @param by_pe the GPU of each PE
std::optional<LinkLimit> gpu_link_limit(const Node& node, const Point& point,
                                        const std::vector<GpuSeatPlace>& by_pe);

} // namespace shmemctl::bench
