// A reliable-connected queue pair, from its creation to ready-to-send.
#pragma once

#include <cstdint>

#include "transports/rc/qp_path.h"
#include "transports/verbs/device.h"
#include "transports/verbs/functions.h"

namespace shmemctl::verbs {

/// Where messages of a peer are received.
struct ReceiveTarget {
  ibv_srq* queue = nullptr; ///< nullptr: no receives
  ibv_cq* completions = nullptr;
};

class QueuePair {
public:
  /// @param inline_bytes how much data work requests shall be able to hold; less if the device
  ///                     cannot do that
  /// Throws Error (unavailable).
  QueuePair(Device& device, ibv_cq* completions, int depth, int inline_bytes,
            const ReceiveTarget& receives = {});

  ibv_qp* get() const { return handle_.get(); }
  std::uint32_t number() const { return handle_->qp_num; }
  std::size_t inline_bytes() const { return inline_bytes_; }

  /// Changes its state: to RESET from any, to another from the one before it (rc::move_qp()).
  /// @return 0 or an errno value
  int modify(rc::QpState state, const rc::QpPath& path);

private:
  const Functions* functions_;
  Handle<ibv_qp> handle_;
  std::size_t inline_bytes_ = 0;
};

/// A packet number to begin with that packets of earlier connections do not have: 24 bits.
std::uint32_t first_packet_number();

/// The address vector of a path.
ibv_ah_attr address_of(const rc::QpPath& path);

/// The wire's code of an MTU; @param bytes 256 to 4096
ibv_mtu mtu_code(int bytes);

} // namespace shmemctl::verbs
