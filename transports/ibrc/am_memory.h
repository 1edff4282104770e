// This PE's memory for its messages and their replies: one block per QP set and target, registered
// with every device.
#pragma once

#include <cstdint>
#include <vector>

#include "transports/ibrc/am_format.h"
#include "transports/ibrc/job_view.h"
#include "transports/rc/pages.h"
#include "transports/verbs/registration.h"

namespace shmemctl::ibrc {

class MessageMemory {
public:
  /// @param credits by PE; 0 for one that is not connected
  /// Throws Error (unavailable).
  MessageMemory(const JobView& job, const std::vector<std::uint32_t>& credits, int qp_sets);

  ReplyBlock layout(int pe) const { return {targets_[static_cast<std::size_t>(pe)].credits}; }
  std::byte* block(int pe, std::size_t qp_set) const {
    return pages_.data() + targets_[static_cast<std::size_t>(pe)].begin +
           qp_set * layout(pe).size_bytes();
  }
  std::uint32_t local_key(std::size_t device) const { return handles_[device]->lkey; }
  /// What that PE needs in order to reply.
  ReplyAddress place_for(int pe) const;

private:
  struct Target {
    std::uint32_t credits = 0;
    std::size_t begin = 0; ///< in the pages
  };

  const JobView& job_;
  std::vector<Target> targets_; ///< by PE
  rc::Pages pages_;
  std::vector<verbs::MemoryRegion> handles_; ///< by device; destroyed before the pages
};

} // namespace shmemctl::ibrc
