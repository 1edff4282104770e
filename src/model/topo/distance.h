// The distance of two devices, as `nvidia-smi topo` names it.
#pragma once

#include <string>
#include <string_view>

#include "src/model/topo/node.h"

namespace shmemctl {

/// "X", "NV18", "PIX", ... ; "?" if unknown.
std::string to_string(const Distance& distance);
const char* to_string(PathClass path);
/// The reverse: "PIX", "NV". Empty for other texts.
std::optional<PathClass> parse_path_class(std::string_view word);
/// "PIX", "?", or "NV12" -> {nvlink, 12}. Empty for other texts.
std::optional<Distance> parse_distance(std::string_view word);

/// PCIe distance of two PCI devices (indices into `node.pci`), by nvidia-smi's definitions:
/// PIX  at most one switch (or bridge) on the path; PXB  several, but no host bridge;
/// PHB  the same host bridge; NODE  another host bridge of the same NUMA node;
/// SYS  another NUMA node.
/// Unknown if the NUMA node of either is unknown and needed.
Distance pci_distance(const Node& node, int left, int right);

/// Distance of two devices, numbered GPUs first, then NICs. A recorded matrix takes precedence.
/// NVLink between two GPUs, direct or through NVSwitches (then with the smaller of both GPUs' link
/// counts), takes precedence over PCIe.
Distance distance(const Node& node, int left, int right);
/// The distances of all pairs of GPUs and NICs: the recorded matrix if there is one, otherwise a
/// symmetric matrix with PathClass::self on the diagonal.
DistanceMatrix distance_matrix(const Node& node);

/// As distance(), but from the PCI tree alone: neither by NVLink nor from a recorded matrix.
Distance distance_by_pcie(const Node& node, int left, int right);

} // namespace shmemctl
