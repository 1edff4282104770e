#include "transports/ibrc/am_memory.h"

namespace shmemctl::ibrc {

MessageMemory::MessageMemory(const JobView& job, const std::vector<std::uint32_t>& credits,
                             int qp_sets)
    : job_(job) {
  std::size_t all_bytes = 0;
  for (const std::uint32_t each : credits) {
    targets_.push_back({each, all_bytes});
    all_bytes += each == 0 ? 0 : ReplyBlock{each}.size_bytes() * static_cast<std::size_t>(qp_sets);
  }
  pages_ = rc::Pages(all_bytes, "memory for messages");
  for (const UsedDevice& used : job.devices)
    handles_.push_back(verbs::register_memory(*used.device, pages_.data(), all_bytes,
                                              verbs::MemoryKind::host, {}, "memory for messages"));
}

ReplyAddress MessageMemory::place_for(int pe) const {
  ReplyAddress place;
  place.credits = targets_[static_cast<std::size_t>(pe)].credits;
  place.address = reinterpret_cast<std::uintptr_t>(block(pe, 0));
  for (const auto& nic : job_.nics)
    place.keys.push_back(handles_[nic->device_index]->rkey);
  return place;
}

} // namespace shmemctl::ibrc
