#include <algorithm>
#include <cstring>
#include <vector>

#include "src/runtime/bootstrap/collective_plan.h"

namespace shmemctl {

namespace {

std::size_t modulo(long long value, int size) {
  return static_cast<std::size_t>(((value % size) + size) % size);
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  if (size_bytes > 0)
    std::memcpy(to, from, size_bytes);
}

class BarrierPlan final : public Plan {
public:
  Transfer begin(int) override {
    Transfer transfer;
    transfer.sends = transfer.receives = true;
    return transfer;
  }
};

/// After round k a PE has the blocks of the 2^(k+1) ranks up to its own. They are at their final
/// places, in one run of blocks, or two if it wraps around, so nothing is copied.
class AllgatherPlan final : public Plan {
public:
  AllgatherPlan(int rank, int size, std::byte* receive, std::size_t block_bytes)
      : rank_(rank), size_(size), receive_(receive), block_bytes_(block_bytes) {}

  Transfer begin(int round) override {
    const long long known = 1LL << round;
    const long long count = std::min<long long>(known, size_ - known);
    Transfer transfer;
    transfer.sends = transfer.receives = true;
    transfer.receive = run_of_blocks(rank_ - known - count + 1, count);
    const std::array<Piece, 2> blocks = run_of_blocks(rank_ - count + 1, count);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      transfer.send[i] = {blocks[i].data, blocks[i].size_bytes};
    return transfer;
  }

private:
  std::array<Piece, 2> run_of_blocks(long long first, long long count) const {
    const std::size_t start = modulo(first, size_);
    const std::size_t wanted = static_cast<std::size_t>(count);
    const std::size_t until_end = std::min(wanted, static_cast<std::size_t>(size_) - start);
    return {Piece{receive_ + start * block_bytes_, until_end * block_bytes_},
            Piece{receive_, (wanted - until_end) * block_bytes_}};
  }

  int rank_, size_;
  std::byte* receive_;
  std::size_t block_bytes_;
};

class AlltoallPlan final : public Plan {
public:
  AlltoallPlan(int rank, int size, const std::byte* send, std::byte* receive,
               std::size_t block_bytes)
      : rank_(rank), size_(size), receive_(receive), block_bytes_(block_bytes),
        travelling_(static_cast<std::size_t>(size) * block_bytes) {
    const auto until_end = static_cast<std::size_t>(size - rank) * block_bytes;
    copy_bytes(block(0), send + static_cast<std::size_t>(rank) * block_bytes, until_end);
    copy_bytes(block(0) + until_end, send, travelling_.size() - until_end);
    if (size == 1)
      copy_bytes(receive_, travelling_.data(), block_bytes);
  }

  Transfer begin(int round) override {
    const std::size_t size_bytes = pack(round);
    in_.resize(size_bytes);
    Transfer transfer;
    transfer.sends = transfer.receives = true;
    transfer.send[0] = {out_.data(), size_bytes};
    transfer.receive[0] = {in_.data(), size_bytes};
    return transfer;
  }

  void end(int round) override {
    std::size_t at = 0;
    for_each_run(round, [&](std::byte* run, std::size_t size_bytes) {
      copy_bytes(run, in_.data() + at, size_bytes);
      at += size_bytes;
    });
    if (round + 1 == levels_of(size_))
      for (int distance = 0; distance < size_; ++distance)
        copy_bytes(receive_ + modulo(rank_ - distance, size_) * block_bytes_, block(distance),
                   block_bytes_);
  }

private:
  std::byte* block(int distance) {
    return travelling_.data() + static_cast<std::size_t>(distance) * block_bytes_;
  }
  std::size_t pack(int round) {
    out_.clear();
    for_each_run(round, [&](const std::byte* run, std::size_t size_bytes) {
      out_.insert(out_.end(), run, run + size_bytes);
    });
    return out_.size();
  }
  /// Calls action(first block, bytes) for each run of blocks whose distance has bit `round` set.
  /// The runs have 2^round blocks, except perhaps the last one.
  template <class Action>
  void for_each_run(int round, const Action& action) {
    const long long run = 1LL << round;
    for (long long first = run; first < size_; first += 2 * run)
      action(block(static_cast<int>(first)),
             static_cast<std::size_t>(std::min(run, size_ - first)) * block_bytes_);
  }

  int rank_, size_;
  std::byte* receive_;
  std::size_t block_bytes_;
  std::vector<std::byte> travelling_, out_, in_; ///< travelling_: by distance, source to target
};

class BroadcastPlan final : public Plan {
public:
  BroadcastPlan(int rank, int size, std::byte* data, std::size_t size_bytes, int root)
      : place_(static_cast<long long>(modulo(rank - root, size))), size_(size), data_(data),
        size_bytes_(size_bytes) {}

  Transfer begin(int round) override {
    const long long have = 1LL << round;
    Transfer transfer;
    transfer.sends = place_ < have && place_ + have < size_;
    transfer.receives = place_ >= have && place_ < 2 * have;
    if (transfer.sends)
      transfer.send[0] = {data_, size_bytes_};
    if (transfer.receives)
      transfer.receive[0] = {data_, size_bytes_};
    return transfer;
  }

private:
  long long place_; ///< distance from the root
  int size_;
  std::byte* data_;
  std::size_t size_bytes_;
};

/// The distance of a PE is counted upwards to PE 0, which follows the last PE: size - rank, and 0
/// for PE 0. A PE collects the blocks of PEs at its own distance and beyond. Their ranks are a run
/// that ends with its own rank.
class GatherPlan final : public Plan {
public:
  GatherPlan(int rank, int size, const std::byte* own, std::byte* receive, std::size_t block_bytes)
      : distance_(static_cast<long long>(modulo(-static_cast<long long>(rank), size))),
        lowest_bit_(distance_ & -distance_), size_(size), block_bytes_(block_bytes) {
    if (distance_ == 0) {
      memory_ = receive;
      end_ = size;
      if (own != receive)
        copy_bytes(receive, own, block_bytes);
      return;
    }
    const long long blocks = std::min(lowest_bit_, size_ - distance_);
    kept_.resize(static_cast<std::size_t>(blocks) * block_bytes);
    memory_ = kept_.data();
    end_ = distance_ + blocks - 1;
    copy_bytes(blocks_of(distance_, distance_ + 1).data, own, block_bytes);
  }

  Transfer begin(int round) override {
    const long long stride = 1LL << round;
    Transfer transfer;
    transfer.sends = lowest_bit_ == stride;
    transfer.receives = distance_ % (2 * stride) == 0 && distance_ + stride < size_;
    if (transfer.sends) {
      const Piece mine = blocks_of(distance_, std::min(distance_ + stride, size_));
      transfer.send[0] = {mine.data, mine.size_bytes};
    }
    if (transfer.receives)
      transfer.receive[0] = blocks_of(distance_ + stride, std::min(distance_ + 2 * stride, size_));
    return transfer;
  }

private:
  /// Blocks of the PEs at distances `first` to `last` - 1; distance 0 is not allowed.
  Piece blocks_of(long long first, long long last) const {
    return {memory_ + static_cast<std::size_t>(end_ - (last - 1)) * block_bytes_,
            static_cast<std::size_t>(last - first) * block_bytes_};
  }

  long long distance_, lowest_bit_, size_;
  std::size_t block_bytes_;
  long long end_ = 0; ///< distance of the PE whose block is the first in `memory_`
  std::byte* memory_ = nullptr;
  std::vector<std::byte> kept_;
};

} // namespace

int levels_of(int size) {
  int levels = 0;
  while ((1LL << levels) < size)
    ++levels;
  return levels;
}

int forward_neighbour(int rank, int size, int level) {
  return static_cast<int>(modulo(rank + (1LL << level), size));
}

int backward_neighbour(int rank, int size, int level) {
  return static_cast<int>(modulo(rank - (1LL << level), size));
}

std::unique_ptr<Plan> plan_barrier() {
  return std::make_unique<BarrierPlan>();
}

std::unique_ptr<Plan> plan_allgather(int rank, int size, std::byte* receive,
                                     std::size_t block_bytes) {
  return std::make_unique<AllgatherPlan>(rank, size, receive, block_bytes);
}

std::unique_ptr<Plan> plan_alltoall(int rank, int size, const std::byte* send, std::byte* receive,
                                    std::size_t block_bytes) {
  return std::make_unique<AlltoallPlan>(rank, size, send, receive, block_bytes);
}

std::unique_ptr<Plan> plan_gather(int rank, int size, const std::byte* own, std::byte* receive,
                                  std::size_t block_bytes) {
  return std::make_unique<GatherPlan>(rank, size, own, receive, block_bytes);
}

std::unique_ptr<Plan> plan_broadcast(int rank, int size, std::byte* data, std::size_t size_bytes,
                                     int root) {
  return std::make_unique<BroadcastPlan>(rank, size, data, size_bytes, root);
}

std::string CallLabel::text() const {
  std::string text = "call " + std::to_string(number) + ", " + to_string(kind);
  if (kind != FrameKind::barrier)
    text += " of " + std::to_string(block_bytes) + " bytes";
  if (kind == FrameKind::broadcast)
    text += " from PE " + std::to_string(root);
  return text;
}

void run_plan(Plan& plan, Links& links, const CallLabel& call, const Deadline& deadline) {
  for (int round = 0; round < links.levels(); ++round) {
    links.exchange(call, round, plan.begin(round), deadline);
    plan.end(round);
  }
}

} // namespace shmemctl
