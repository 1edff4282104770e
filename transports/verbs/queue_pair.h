// A reliable-connected queue pair, from its creation to ready-to-send.
#pragma once

#include <cstdint>

#include "transports/rc/qp_path.h"
#include "transports/verbs/device.h"
#include "transports/verbs/functions.h"

namespace shmemctl::verbs {

/// The queues that receive a peer's messages.
struct ReceiveTarget {
  ibv_srq* queue = nullptr; ///< nullptr: no receives
  ibv_cq* completions = nullptr;
};

class QueuePair {
public:
  /// Throws Error (unavailable).
  /// @param inline_bytes wanted capacity of work requests for inline data; halved until the device
  ///                     accepts it
  QueuePair(Device& device, ibv_cq* completions, int depth, int inline_bytes,
            const ReceiveTarget& receives = {});

  ibv_qp* get() const { return handle_.get(); }
  std::uint32_t number() const { return handle_->qp_num; }
  std::size_t inline_bytes() const { return inline_bytes_; }

  /// Changes the QP's state: to RESET from any state, to another state from the one before it
  /// (rc::move_qp()).
  /// @return 0 or an errno value
  int modify(rc::QpState state, const rc::QpPath& path);

private:
  const Functions* functions_;
  Handle<ibv_qp> handle_;
  std::size_t inline_bytes_ = 0;
};

/// A random first packet sequence number of 24 bits, so that packets of an earlier connection are
/// not taken for packets of this one.
std::uint32_t first_packet_number();

/// The address vector of a path.
ibv_ah_attr address_of(const rc::QpPath& path);

/// The enum value of an MTU; @param bytes 256 to 4096
ibv_mtu mtu_code(int bytes);

} // namespace shmemctl::verbs
