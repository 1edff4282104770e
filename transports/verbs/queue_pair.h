// A reliable-connected queue pair, from its creation to ready-to-send.
#pragma once

#include <cstdint>

#include "transports/verbs/device.h"
#include "transports/verbs/handles.h"

namespace shmemctl::verbs {

/// One end of a path, as the other one has to know it.
struct PathEnd {
  std::uint16_t lid = 0;
  RawGid gid{};
};

/// How a queue pair reaches its peer.
struct Path {
  int port = 1;
  bool global = true; ///< with a GRH: always on Ethernet
  int sgid_index = 0; ///< of the own port's table
  PathEnd peer;
  int mtu_bytes = 1024;
  int service_level = 0;
  int traffic_class = 0;
  std::uint32_t peer_qp = 0;
  std::uint32_t my_psn = 0, peer_psn = 0; ///< first packet numbers: 24 bits
  int timeout = 18;                       ///< 4.096 us times 2 to this power
  int retry_count = 6;
  int outstanding_reads = 1; ///< READs and atomics in flight, as requester and as responder
};

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

  /// The state transitions, each from the previous state. Return 0 or an errno value.
  int to_init(int port);
  int to_receive(const Path& path);
  int to_send(const Path& path);
  /// To RESET, from any state.
  int reset();

private:
  const Functions* functions_;
  Handle<ibv_qp> handle_;
  std::size_t inline_bytes_ = 0;
};

/// A packet number to begin with that packets of earlier connections do not have: 24 bits.
std::uint32_t first_packet_number();

/// The wire's code of an MTU; @param bytes 256 to 4096
ibv_mtu mtu_code(int bytes);

} // namespace shmemctl::verbs
