// What stands on the other end of a software queue's wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "transports/mlx5/entry.h"
#include "transports/mlx5/soft/outcome.h"

namespace shmemctl::mlx5 {

/// A checked piece of local memory.
struct BytePiece {
  std::byte* bytes;
  std::size_t size_bytes;
  bool is_gpu = false; ///< memory of a GPU: only who can copy it may touch it
};

/// Carries out the operations of one queue at its peer, in the order of the calls: a later
/// operation is not seen there before an earlier one. Called by one thread at a time. Whatever is
/// thrown is a failed connection to the device.
class Executor {
public:
  virtual ~Executor() = default;

  /// Whether the key allows it: what an operation that is carried out later would answer.
  virtual Outcome check(const RemotePiece& remote, std::uint64_t size_bytes,
                        unsigned access) const = 0;
  /// The pieces one behind the other, `size_bytes` in all, at least 1.
  virtual Outcome write(const RemotePiece& remote, std::span<const BytePiece> pieces,
                        std::uint64_t size_bytes) = 0;
  virtual Outcome read(const RemotePiece& remote, std::span<const BytePiece> pieces,
                       std::uint64_t size_bytes) = 0;
  /// `old` gets the value before, in the host's order.
  virtual Outcome atomic(const RemotePiece& remote, const AtomicFields& fields,
                         std::uint64_t& old) = 0;
  /// Returns when everything before is complete at the target. Called before completions are
  /// written.
  virtual Outcome finish() { return {}; }
};

/// Whether any of these is a GPU's.
bool any_of_gpu(std::span<const BytePiece> pieces);

/// What a masked or plain atomic makes of `old`.
std::uint64_t new_value(const AtomicFields& fields, std::uint64_t old);

/// The operations' address: aligned to the operand, or an outcome that says it is not.
Outcome check_alignment(const RemotePiece& remote, const AtomicFields& fields);

} // namespace shmemctl::mlx5
