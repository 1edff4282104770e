// A peer some of whose memory is a GPU's: operations on that go another way than all others.
#pragma once

#include <memory>
#include <utility>

#include "transports/mlx5/soft/executor.h"
#include "transports/mlx5/soft/transport_executor.h"

namespace shmemctl::mlx5 {

class SplitExecutor final : public Executor {
public:
  explicit SplitExecutor(std::unique_ptr<Executor> host)
      : host_(std::move(host)), last_(host_.get()) {}

  /// The way to the peer's GPU memory; nullptr: there is none any more, and its keys are unknown.
  /// While the HCA is held.
  void use_for_gpu(std::unique_ptr<TransportExecutor> gpu) {
    gpu_ = std::move(gpu);
    last_ = host_.get();
  }
  TransportExecutor* for_gpu() const { return gpu_.get(); }

  Outcome check(const RemotePiece& remote, std::uint64_t size_bytes,
                unsigned access) const override {
    return way_to(remote).check(remote, size_bytes, access);
  }
  Outcome write(const RemotePiece& remote, std::span<const BytePiece> pieces,
                std::uint64_t size_bytes) override {
    return by_way_to(remote, [&](Executor& way) { return way.write(remote, pieces, size_bytes); });
  }
  Outcome read(const RemotePiece& remote, std::span<const BytePiece> pieces,
               std::uint64_t size_bytes) override {
    return by_way_to(remote, [&](Executor& way) { return way.read(remote, pieces, size_bytes); });
  }
  Outcome atomic(const RemotePiece& remote, const AtomicFields& fields,
                 std::uint64_t& old) override {
    return by_way_to(remote, [&](Executor& way) { return way.atomic(remote, fields, old); });
  }
  Outcome finish() override { return last_->finish(); }

private:
  /// The two know nothing of each other, and a queue's operations are done in its order: what comes
  /// by the other way waits until all before it is complete.
  template <class Operation>
  Outcome by_way_to(const RemotePiece& remote, const Operation& operation) {
    Executor* const way = &way_to(remote);
    if (way != last_)
      if (const Outcome outcome = last_->finish())
        return outcome;
    last_ = way;
    return operation(*way);
  }

  Executor& way_to(const RemotePiece& remote) const {
    return gpu_ && gpu_->knows(remote.rkey) ? *gpu_ : *host_;
  }

  std::unique_ptr<Executor> host_;
  std::unique_ptr<TransportExecutor> gpu_;
  Executor* last_; ///< by whom the last operation went
};

} // namespace shmemctl::mlx5
