// The bootstrap's collectives as plans: which bytes move in each round. Plans use no socket, so
// tests simulate thousands of PEs in one process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/deadline.h"
#include "src/runtime/bootstrap/frame.h"

namespace shmemctl {

/// ceil(log2 size): the number of neighbours in each direction, and of rounds in every collective.
int levels_of(int size);
/// The PE at distance +2^level (forward) or -2^level (back), modulo size.
int forward_neighbour(int rank, int size, int level);
int backward_neighbour(int rank, int size, int level);

struct ConstPiece {
  const std::byte* data = nullptr;
  std::size_t size_bytes = 0;
};
struct Piece {
  std::byte* data = nullptr;
  std::size_t size_bytes = 0;
};

/// What one PE does in one round: it sends a message to the neighbour at +2^round, receives one
/// from the neighbour at -2^round, or does both or neither. A message may be empty.
struct Transfer {
  bool sends = false, receives = false;
  std::array<ConstPiece, 2> send;
  std::array<Piece, 2> receive;
  std::size_t send_bytes() const { return send[0].size_bytes + send[1].size_bytes; }
  std::size_t receive_bytes() const { return receive[0].size_bytes + receive[1].size_bytes; }
};

/// One collective call of one PE. For each round, in order: begin(), move the bytes, end().
class Plan {
public:
  virtual ~Plan() = default;
  virtual Transfer begin(int round) = 0;
  virtual void end(int round) { static_cast<void>(round); }
};
/// Dissemination: in each round, one empty message to the neighbour at +2^round.
std::unique_ptr<Plan> plan_barrier();
/// Bruck: each round doubles the known blocks, up to all. `receive` must hold this PE's block.
std::unique_ptr<Plan> plan_allgather(int rank, int size, std::byte* receive,
                                     std::size_t block_bytes);
/// Bruck: round k sends the blocks whose distance to their destination has bit k set, at most half
/// of all blocks.
std::unique_ptr<Plan> plan_alltoall(int rank, int size, const std::byte* send, std::byte* receive,
                                    std::size_t block_bytes);
/// Binomial tree: after round k, the root and the next 2^(k+1) - 1 PEs (or all) have the data.
std::unique_ptr<Plan> plan_broadcast(int rank, int size, std::byte* data, std::size_t size_bytes,
                                     int root);

/// Binomial tree towards PE 0: in round k, a PE sends the blocks that it has, of up to 2^k PEs, if
/// bit k is the lowest set bit of its distance to PE 0 (size - rank).
/// @param receive on PE 0, room for all blocks; not used on other PEs
std::unique_ptr<Plan> plan_gather(int rank, int size, const std::byte* own, std::byte* receive,
                                  std::size_t block_bytes);

/// Identifies a collective call. PEs are in step if their labels are equal.
struct CallLabel {
  FrameKind kind = FrameKind::barrier;
  std::uint32_t number = 0;
  std::uint32_t root = 0;
  std::uint64_t block_bytes = 0;
  /// E.g. "call 7, allgather of 16 bytes".
  std::string text() const;
  bool operator==(const CallLabel&) const = default;
};

/// The connections over which a plan is executed: moves the bytes of one round.
class Links {
public:
  virtual ~Links() = default;
  virtual int levels() const = 0;
  virtual void exchange(const CallLabel& call, int round, const Transfer& transfer,
                        const Deadline& deadline) = 0;
};
void run_plan(Plan& plan, Links& links, const CallLabel& call, const Deadline& deadline);

} // namespace shmemctl
