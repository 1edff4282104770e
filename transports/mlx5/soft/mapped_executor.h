// A peer whose memory is mapped here.
#pragma once

#include "transports/mlx5/soft/executor.h"
#include "transports/mlx5/soft/key_table.h"

namespace shmemctl::mlx5 {

/// Loads, stores and the processor's atomics on the windows' mapped memory.
class MappedExecutor final : public Executor {
public:
  /// What the peer has registered. Windows may come later, while the HCA is held (SoftHca::hold()).
  /// @throw Error (usage) if the window is not mapped here
  void add(const KeyWindow& window);

  Outcome check(const RemotePiece& remote, std::uint64_t size_bytes,
                unsigned access) const override {
    return keys_.find_remote(remote.rkey, remote.address, size_bytes, access).outcome;
  }
  Outcome write(const RemotePiece& remote, std::span<const BytePiece> pieces,
                std::uint64_t size_bytes) override;
  Outcome read(const RemotePiece& remote, std::span<const BytePiece> pieces,
               std::uint64_t size_bytes) override;
  Outcome atomic(const RemotePiece& remote, const AtomicFields& fields,
                 std::uint64_t& old) override;

private:
  KeyTable keys_;
};

} // namespace shmemctl::mlx5
