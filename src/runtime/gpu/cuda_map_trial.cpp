#include "src/runtime/gpu/cuda_map_trial.h"

#include "src/cuda/buffers.h"

namespace shmemctl {

namespace {

/// What a PE writes at the start of its chunk.
std::uint64_t mark_of(int pe) {
  return 0x5348'4d43'0000'0000 + static_cast<std::uint64_t>(pe);
}

} // namespace

std::string why_no_peer_access(const cuda::Device& device, const std::string& uuid) {
  if (device.info().uuid == uuid)
    return "";
  for (const cuda::DeviceInfo& other : device.driver().devices()) {
    if (other.uuid != uuid)
      continue;
    int can = 0, atomics = 0;
    CUdevice mine = 0, theirs = 0;
    const cuda::Functions& call = device.call();
    const std::string pair = " from " + device.text() + " (" + device.info().pci_address +
                             ") to GPU " + std::to_string(other.ordinal) + " (" +
                             other.pci_address + ")";
    if (call.device_get(&mine, device.info().ordinal) != CUDA_SUCCESS ||
        call.device_get(&theirs, other.ordinal) != CUDA_SUCCESS ||
        call.device_can_access_peer(&can, mine, theirs) != CUDA_SUCCESS || can == 0)
      return "CUDA has no peer access" + pair;
    // Kernels count the members of a barrier by them.
    if (call.device_get_p2p_attribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                      mine, theirs) != CUDA_SUCCESS ||
        atomics == 0)
      return "the link has no native atomics" + pair;
  }
  return "";
}

std::vector<std::string> try_vmm_mapping(const std::shared_ptr<const cuda::Device>& device,
                                         HeapBacking& backing, LocalPeers& peers,
                                         const std::vector<int>& candidates, const GpuSetup& setup,
                                         const Deadline& deadline) {
  std::vector<std::string> why_not(setup.offers.size());
  const std::size_t chunk_bytes = backing.granularity_bytes();
  const auto slots = static_cast<std::size_t>(peers.slots());
  const auto my_slot = static_cast<std::size_t>(peers.my_slot());
  const auto range = backing.reserve(slots * chunk_bytes);
  const auto place = [&](std::size_t slot) { return range->base() + slot * chunk_bytes; };
  const cuda::Stream stream(device);
  const std::unique_ptr<Chunk> mine = backing.create(chunk_bytes);
  mine->map(place(my_slot));
  const std::uint64_t mark = mark_of(setup.placement->pe);
  cuda::copy_now(stream, place(my_slot), &mark, sizeof mark);
  std::vector<FileDescriptor> theirs = peers.exchange(mine->descriptor(), deadline);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const int pe = candidates[slot];
    std::string& reason = why_not[static_cast<std::size_t>(pe)];
    reason = why_no_peer_access(*device, setup.offers[static_cast<std::size_t>(pe)].uuid);
    if (slot == my_slot || !reason.empty())
      continue;
    try {
      backing.import(std::move(theirs[slot]), chunk_bytes)->map(place(slot));
      std::uint64_t seen = 0;
      cuda::copy_now(stream, &seen, place(slot), sizeof seen);
      if (seen != mark_of(pe))
        reason = "its memory reads wrong when it is mapped here";
    } catch (const Error& error) {
      reason = error.message();
    }
  }
  return why_not;
}

} // namespace shmemctl
