// What QueueClient makes WQEs of: data of any length, answers that are waited for. Included by
// queue_client.h.
#pragma once

#include "kernels/device/queue_client.h"

namespace shmemctl::device {

template <class Memory, class Wait>
SHMEMCTL_HOST_DEVICE bool
QueueClient<Memory, Wait>::post_put(const Place& target, const void* source,
                                    std::uint64_t size_bytes, mlx5::Bell bell, bool completion,
                                    std::uint64_t& ticket) {
  for (std::uint64_t done = 0; done < size_bytes;) {
    const direct::RemoteSegment* const segment = find(target, done);
    if (!segment)
      return false;
    const auto* const bytes = static_cast<const unsigned char*>(source) + done;
    const auto address = reinterpret_cast<std::uint64_t>(bytes);
    std::uint64_t count = segment->left_at(target.offset_bytes + done);
    count = count < size_bytes - done ? count : size_bytes - done;
    // Small data, and memory that is not registered, is sent inline.
    const direct::LocalSegment* const local =
        size_bytes <= most_inline_bytes ? nullptr : table_.find_local(address);
    const std::uint64_t most = !local ? most_inline_bytes
                               : local->end - address < mlx5::most_message_bytes
                                   ? local->end - address
                                   : mlx5::most_message_bytes;
    count = count < most ? count : most;
    const auto size = static_cast<std::uint32_t>(count);
    const mlx5::RemotePiece remote =
        segment->piece_at(target.offset_bytes + done, queue_.peer_port);
    done += count;
    const bool last = done == size_bytes;
    const mlx5::Post how{last ? bell : mlx5::Bell::later, last && completion, false};
    const std::uint32_t blocks = local ? 1 : mlx5::blocks_of(mlx5::inline_octowords(size));
    if (!post(
            blocks, how,
            [&](auto& slot, const mlx5::EntryHead& head) {
              if (local)
                mlx5::build_write(slot, head, remote, {address, local->lkeys[queue_.port], size});
              else
                mlx5::build_inline_write(slot, head, remote, bytes, size);
            },
            ticket))
      return false;
  }
  return true;
}

template <class Memory, class Wait>
SHMEMCTL_HOST_DEVICE bool QueueClient<Memory, Wait>::get(void* target, const Place& source,
                                                         std::uint64_t size_bytes, bool blocking) {
  std::uint64_t ticket = 0;
  bool due = false;
  for (std::uint64_t done = 0; done < size_bytes;) {
    const direct::RemoteSegment* const segment = find(source, done);
    if (!segment || !well())
      return false;
    auto* const bytes = static_cast<unsigned char*>(target) + done;
    const auto address = reinterpret_cast<std::uint64_t>(bytes);
    std::uint64_t count = segment->left_at(source.offset_bytes + done);
    count = count < size_bytes - done ? count : size_bytes - done;
    const direct::LocalSegment* const local = table_.find_local(address);
    if (!local) {
      count = count < sizeof(QueueResult) ? count : sizeof(QueueResult);
      if (!get_by_result(bytes, {source.region, source.offset_bytes + done},
                         static_cast<std::uint32_t>(count)))
        return false;
      done += count;
      due = false; // READs of one QP complete in order
      continue;
    }
    const std::uint64_t most = local->end - address < mlx5::most_message_bytes
                                   ? local->end - address
                                   : mlx5::most_message_bytes;
    count = count < most ? count : most;
    const mlx5::LocalPiece piece{address, local->lkeys[queue_.port],
                                 static_cast<std::uint32_t>(count)};
    if (!post_read(source, done, piece, *segment, blocking && done + count == size_bytes, ticket))
      return false;
    done += count;
    due = true;
  }
  return !blocking || !due || wait_for(ticket);
}

template <class Memory, class Wait>
SHMEMCTL_HOST_DEVICE bool
QueueClient<Memory, Wait>::atomic(const Place& target, AtomicOp op, std::uint8_t size_bytes,
                                  std::uint64_t operand, std::uint64_t compare,
                                  std::uint64_t* old) {
  const mlx5::AtomicFields fields = mlx5::atomic_fields(op, size_bytes, operand, compare);
  std::uint64_t ticket = 0;
  if (!well() || !has_atomics(size_bytes))
    return false;
  if (!old)
    return post_update(target, fields, false, ticket);
  std::uint32_t number = 0;
  if (!claim(number) ||
      !post_atomic(target, fields, result_piece(number, size_bytes), true, ticket) ||
      !wait_for(ticket))
    return false;
  if (size_bytes == 4) {
    std::uint32_t brought = 0;
    copy_result(&brought, number, sizeof brought);
    *old = mlx5::old_value_4(brought);
  } else {
    copy_result(old, number, sizeof *old);
  }
  give_back(number);
  return true;
}

} // namespace shmemctl::device
