// Whether the NICs of a job read and write the GPUs' memory themselves: what each PE can, and what
// all do then.
#pragma once

#include <string>
#include <vector>

#include "transports/device_memory.h"
#include "transports/transport.h"

namespace shmemctl {

/// What one PE can with one transport of the job.
struct GpuDirectOffer {
  std::string transport;
  std::string way;         ///< "dma-buf", "peer memory"; "" if it cannot
  std::string reason;      ///< why not: one clause
  bool reaches_all = true; ///< those PEs that it has to
};
/// Those of a PE: one for each transport of the job, in the order of preference.
using GpuDirectOffers = std::vector<GpuDirectOffer>;
std::string to_line(const GpuDirectOffers& offers);
/// Survives any text: what is none is no offer.
GpuDirectOffers gpu_direct_offers_of(const std::string& line);

/// A transport, and whom it reaches.
struct GpuDirectCandidate {
  Transport* transport = nullptr;
  std::vector<bool> reaches; ///< by PE
};
/// Tries them on this PE's own memory.
/// @param needed by PE: whether GPU memory there is to be reached by a network
/// @param sample a region of this PE's GPU memory
GpuDirectOffers try_gpu_direct(const std::vector<GpuDirectCandidate>& candidates,
                               const std::vector<bool>& needed,
                               const std::shared_ptr<const DeviceMemory>& memory,
                               const RegionView& sample);

struct GpuDirectChoice {
  int transport = -1; ///< whose NICs do it, on all PEs; -1: transfers are staged
  std::string text;   ///< "GPUDirect RDMA by dma-buf over ibrc", "staged: ...", with the reason
};
/// The first transport with which all PEs can; the same on all PEs. Throws Error (unavailable)
/// where GPUDIRECT asks for a way that there is not.
/// @param wanted the option GPUDIRECT
/// @param by_pe  what each PE offers
GpuDirectChoice choose_gpu_direct(const std::string& wanted,
                                  const std::vector<GpuDirectOffers>& by_pe);

} // namespace shmemctl
