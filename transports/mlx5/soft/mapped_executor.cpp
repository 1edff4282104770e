#include "transports/mlx5/soft/mapped_executor.h"

#include <atomic>

#include "src/base/error.h"
#include "transports/mlx5/hca.h"
#include "transports/shm/words.h"

namespace shmemctl::mlx5 {

namespace {

template <class Word>
std::uint64_t apply(std::byte* target, const AtomicFields& fields) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(target));
  if (fields.opcode == Opcode::atomic_fa ||
      (fields.opcode == Opcode::atomic_masked_fa && fields.operand_mask == 0))
    return word.fetch_add(static_cast<Word>(fields.operand), std::memory_order_seq_cst);
  Word old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(old, static_cast<Word>(new_value(fields, old)),
                                     std::memory_order_seq_cst)) {
  }
  return old;
}

} // namespace

void MappedExecutor::add(const KeyWindow& window) {
  if (!window.mapped || window.is_gpu)
    throw Error(ExitCode::usage, "soft-mlx5", "access memory of a peer",
                "not mapped in this process",
                "report this as a bug in shmemctl, with the command line");
  keys_.add(window);
}

Outcome MappedExecutor::write(const RemotePiece& remote, std::span<const BytePiece> pieces,
                              std::uint64_t size_bytes) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, size_bytes, access_remote_write);
  if (match.outcome)
    return match.outcome;
  if (any_of_gpu(pieces))
    return {Syndrome::local_protection, SoftCause::gpu_memory};
  std::byte* target = match.window->mapped + match.offset_bytes;
  for (const BytePiece& piece : pieces) {
    copy_to_shared(target, piece.bytes, piece.size_bytes);
    target += piece.size_bytes;
    // Later operations of this queue come after it.
    order_fence();
  }
  return {};
}

Outcome MappedExecutor::read(const RemotePiece& remote, std::span<const BytePiece> pieces,
                             std::uint64_t size_bytes) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, size_bytes, access_remote_read);
  if (match.outcome)
    return match.outcome;
  if (any_of_gpu(pieces))
    return {Syndrome::local_protection, SoftCause::gpu_memory};
  // Behind a write of this queue, to wherever it went, nothing older is read.
  full_fence();
  std::byte* source = match.window->mapped + match.offset_bytes;
  for (const BytePiece& piece : pieces) {
    copy_from_shared(piece.bytes, source, piece.size_bytes);
    source += piece.size_bytes;
  }
  return {};
}

Outcome MappedExecutor::atomic(const RemotePiece& remote, const AtomicFields& fields,
                               std::uint64_t& old) {
  const KeyMatch match =
      keys_.find_remote(remote.rkey, remote.address, fields.size_bytes, access_remote_atomic);
  if (match.outcome)
    return match.outcome;
  std::byte* target = match.window->mapped + match.offset_bytes;
  // What is aligned there may stand elsewhere here only if the window is badly mapped.
  if (const Outcome outcome = check_alignment(
          {reinterpret_cast<std::uint64_t>(target) | remote.address, remote.rkey}, fields))
    return outcome;
  old = fields.size_bytes == 4 ? apply<std::uint32_t>(target, fields)
                               : apply<std::uint64_t>(target, fields);
  return {};
}

} // namespace shmemctl::mlx5
