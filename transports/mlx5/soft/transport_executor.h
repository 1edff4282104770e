// A peer that a transport reaches.
#pragma once

#include "transports/mlx5/soft/executor.h"
#include "transports/mlx5/soft/key_table.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// One put, get or atomic for each piece. The transport orders less than a queue does, so there is
/// a fence between operations, and a quiet before a READ behind a WRITE.
class TransportExecutor final : public Executor {
public:
  enum class Reaches {
    host, ///< the transport takes memory of the host alone
    gpus  ///< memory of GPUs too, here and there
  };
  /// @param context of the transport; no one else uses it. Who serves the HCA makes the calls.
  TransportExecutor(Transport& transport, int context, int pe, Reaches reaches = Reaches::host)
      : transport_(transport), context_(context), pe_(pe), reaches_(reaches) {}

  /// What the peer has registered, as a piece of one of its regions. May come later, while the HCA
  /// is held (SoftHca::hold()).
  void add(const KeyWindow& window) { keys_.add(window); }
  /// Whether the peer has registered something under this key.
  bool knows(std::uint32_t rkey) const { return keys_.knows(rkey); }

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
  Outcome finish() override;

private:
  RemoteAddress place(const KeyMatch& match) const;
  bool refuses(std::span<const BytePiece> pieces) const {
    return reaches_ == Reaches::host && any_of_gpu(pieces);
  }
  void come_after(bool reads);
  void write_piece(const RemoteAddress& target, const BytePiece& piece);

  Transport& transport_;
  int context_;
  int pe_;
  Reaches reaches_;
  KeyTable keys_;
  bool wrote_ = false; ///< since the last quiet
};

} // namespace shmemctl::mlx5
