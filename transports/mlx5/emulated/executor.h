// Executors: how an emulated QP executes operations at its peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "src/abi/wqe.h"
#include "transports/mlx5/emulated/key_table.h"
#include "transports/mlx5/emulated/outcome.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// A checked piece of local memory.
struct BytePiece {
  std::byte* bytes;
  std::size_t size_bytes;
  bool is_gpu = false; ///< GPU memory, which only a transport that can copy it may access
};

/// Executes the operations of one QP at its peer, in call order: a later operation is not visible
/// at the peer before an earlier one. Called by one thread at a time. The device treats every
/// exception as a failed connection.
class Executor {
public:
  virtual ~Executor() = default;

  /// Checks the key, range and access of an operation that is executed later, and returns the
  /// failure that it would have.
  virtual Outcome check(const RaddrSegment& remote, std::uint64_t size_bytes,
                        unsigned access) const = 0;
  /// Writes the pieces to contiguous memory of the peer; `size_bytes` in total, at least 1.
  virtual Outcome write(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                        std::uint64_t size_bytes) = 0;
  virtual Outcome read(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                       std::uint64_t size_bytes) = 0;
  /// @param old receives the old value, in host byte order
  virtual Outcome atomic(const RaddrSegment& remote, const AtomicFields& fields,
                         std::uint64_t& old) = 0;
  /// Returns when all earlier operations are complete at the target. Called before CQEs are
  /// written.
  virtual Outcome finish() { return {}; }
};

/// Whether any of the pieces is GPU memory.
bool any_of_gpu(std::span<const BytePiece> pieces);

/// The new value of an atomic, masked or not, applied to `old`.
std::uint64_t new_value(const AtomicFields& fields, std::uint64_t old);

/// Success, or a failure if the address is not a multiple of the operand's size.
Outcome check_alignment(const RaddrSegment& remote, const AtomicFields& fields);

/// Executes operations by loads, stores and CPU atomics on the peer's mapped memory.
class MappedExecutor final : public Executor {
public:
  /// Adds memory that the peer has registered. If the QP is in use, the HCA must be held
  /// (EmulatedHca::hold()).
  /// @throw Error (usage) if the window is not mapped here, or is GPU memory
  void add(const KeyWindow& window);

  Outcome check(const RaddrSegment& remote, std::uint64_t size_bytes,
                unsigned access) const override {
    return keys_.find_remote(remote.rkey, remote.address, size_bytes, access).outcome;
  }
  Outcome write(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                std::uint64_t size_bytes) override;
  Outcome read(const RaddrSegment& remote, std::span<const BytePiece> pieces,
               std::uint64_t size_bytes) override;
  Outcome atomic(const RaddrSegment& remote, const AtomicFields& fields,
                 std::uint64_t& old) override;

private:
  KeyTable keys_;
};

/// Executes operations by a put, get or atomic per piece. A transport orders less than a QP, so a
/// fence separates operations, and a quiet precedes a READ that follows a WRITE.
class TransportExecutor final : public Executor {
public:
  enum class Reaches {
    host, ///< the transport accepts host memory only
    gpus  ///< GPU memory too, on this PE and on peers
  };
  /// @param context context of the transport for this use only; the thread that drives the HCA uses
  /// it
  TransportExecutor(Transport& transport, int context, int pe, Reaches reaches = Reaches::host)
      : transport_(transport), context_(context), pe_(pe), reaches_(reaches) {}

  /// Adds memory that the peer has registered, a part of one of its regions. If the QP is in use,
  /// the HCA must be held (EmulatedHca::hold()).
  void add(const KeyWindow& window) { keys_.add(window); }
  /// Forgets the keys of a region; the HCA must be held.
  void drop_region(int region) { keys_.remove_region(region); }
  /// Whether memory of the peer has been added under this key.
  bool knows(std::uint32_t rkey) const { return keys_.knows(rkey); }

  Outcome check(const RaddrSegment& remote, std::uint64_t size_bytes,
                unsigned access) const override {
    return keys_.find_remote(remote.rkey, remote.address, size_bytes, access).outcome;
  }
  Outcome write(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                std::uint64_t size_bytes) override;
  Outcome read(const RaddrSegment& remote, std::span<const BytePiece> pieces,
               std::uint64_t size_bytes) override;
  Outcome atomic(const RaddrSegment& remote, const AtomicFields& fields,
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

class SplitExecutor final : public Executor {
public:
  explicit SplitExecutor(std::unique_ptr<Executor> host)
      : host_(std::move(host)), last_(host_.get()) {}

  /// Sets the executor for the peer's GPU memory; with nullptr, keys of GPU memory become unknown.
  /// Called while the HCA is held.
  void use_for_gpu(std::unique_ptr<TransportExecutor> gpu) {
    gpu_ = std::move(gpu);
    last_ = host_.get();
  }
  TransportExecutor* for_gpu() const { return gpu_.get(); }

  Outcome check(const RaddrSegment& remote, std::uint64_t size_bytes,
                unsigned access) const override {
    return path_to(remote).check(remote, size_bytes, access);
  }
  Outcome write(const RaddrSegment& remote, std::span<const BytePiece> pieces,
                std::uint64_t size_bytes) override {
    return by_path_to(remote,
                      [&](Executor& path) { return path.write(remote, pieces, size_bytes); });
  }
  Outcome read(const RaddrSegment& remote, std::span<const BytePiece> pieces,
               std::uint64_t size_bytes) override {
    return by_path_to(remote,
                      [&](Executor& path) { return path.read(remote, pieces, size_bytes); });
  }
  Outcome atomic(const RaddrSegment& remote, const AtomicFields& fields,
                 std::uint64_t& old) override {
    return by_path_to(remote, [&](Executor& path) { return path.atomic(remote, fields, old); });
  }
  Outcome finish() override { return last_->finish(); }

private:
  /// Runs the operation on the executor for the remote key. Operations of a QP are executed in
  /// order, so a switch to the other executor waits until all earlier operations are complete.
  template <class Operation>
  Outcome by_path_to(const RaddrSegment& remote, const Operation& operation) {
    Executor* const path = &path_to(remote);
    if (path != last_)
      if (const Outcome outcome = last_->finish())
        return outcome;
    last_ = path;
    return operation(*path);
  }

  Executor& path_to(const RaddrSegment& remote) const {
    return gpu_ && gpu_->knows(remote.rkey) ? *gpu_ : *host_;
  }

  std::unique_ptr<Executor> host_;
  std::unique_ptr<TransportExecutor> gpu_;
  Executor* last_; ///< executor of the last operation
};

} // namespace shmemctl::mlx5
