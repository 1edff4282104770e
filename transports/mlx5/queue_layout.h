// Layout of a QP's queues, doorbell records and shared state in one block of memory.
#pragma once

#include <bit>
#include <cstddef>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/round_up.h"
#include "transports/mlx5/completion.h"
#include "transports/mlx5/hca.h"

namespace shmemctl::mlx5 {

struct QueueLayout {
  static constexpr std::size_t device_page_bytes = 4096; ///< the device's unit, on any machine
  /// In the page of doorbell records. A QP's record has two words, of which the send record is the
  /// second; a CQ's record has two, of which the consumer index is the first.
  static constexpr std::size_t queue_records = 0, send_record = 4, completions_record = 64;
  /// In the page of records: the emulated HCA's register, away from the records, since the emulated
  /// HCA polls it.
  static constexpr std::size_t soft_doorbell = 1024;

  std::size_t completions_offset; ///< WQEs are at 0
  std::size_t records_offset;
  std::size_t words_offset;
  std::size_t size_bytes;
  std::uint32_t completion_entries;
};

/// What the operating system maps and registers as a whole: 4 KiB, or 64 KiB on some arm64 hosts.
inline std::size_t page_bytes_of(const QueueOptions& options) {
  static const auto system = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return options.page_bytes > 0 ? options.page_bytes : system;
}

/// @throw Error (usage) if the options are not consistent
inline QueueLayout queue_layout(const QueueOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(ExitCode::usage, "an mlx5 send queue", "lay out", what,
                "choose a power of two of 16 to 32768 WQEBBs, and completions at least four times "
                "in a queue");
  };
  if (!std::has_single_bit(options.blocks) || options.blocks < 16 ||
      options.blocks > most_queue_blocks)
    refuse(std::to_string(options.blocks) + " WQEBBs");
  if (!std::has_single_bit(options.signal_every) || options.signal_every > options.blocks / 4)
    refuse("completions every " + std::to_string(options.signal_every) + " of " +
           std::to_string(options.blocks) + " WQEBBs");
  if (!std::has_single_bit(options.ring_every))
    refuse("a doorbell every " + std::to_string(options.ring_every) + " WQEBBs");

  const std::size_t page_bytes = page_bytes_of(options);
  if (!std::has_single_bit(page_bytes) || page_bytes < QueueLayout::device_page_bytes)
    refuse("pages of " + std::to_string(page_bytes) + " bytes");
  const auto pages = [page_bytes](std::size_t bytes) { return round_up(bytes, page_bytes); };
  QueueLayout layout{};
  layout.completion_entries = options.completions == CompletionMode::collapsed ? 1 : options.blocks;
  layout.completions_offset = pages(options.blocks * block_bytes);
  layout.records_offset = layout.completions_offset +
                          pages(std::size_t{layout.completion_entries} * completion_words * 8);
  layout.words_offset = layout.records_offset + page_bytes;
  layout.size_bytes = layout.words_offset + pages(sizeof(QueueWords));
  return layout;
}

/// The view of a QP laid out at `base`, with the emulated register; the caller fills in the QPN,
/// and the register of a real HCA.
inline QueueView queue_view(const QueueOptions& options, const QueueLayout& layout, void* base) {
  auto* bytes = static_cast<std::byte*>(base);
  std::byte* records = bytes + layout.records_offset;
  QueueView view{};
  view.entries = reinterpret_cast<std::uint64_t*>(bytes);
  view.completions = reinterpret_cast<std::uint64_t*>(bytes + layout.completions_offset);
  view.send_record = reinterpret_cast<std::uint32_t*>(records + QueueLayout::send_record);
  view.completions_record =
      reinterpret_cast<std::uint32_t*>(records + QueueLayout::completions_record);
  view.doorbell = reinterpret_cast<std::uint64_t*>(records + QueueLayout::soft_doorbell);
  view.words = reinterpret_cast<QueueWords*>(bytes + layout.words_offset);
  view.blocks_log2 = static_cast<std::uint32_t>(std::countr_zero(options.blocks));
  view.signal_log2 = static_cast<std::uint32_t>(std::countr_zero(options.signal_every));
  view.ring_log2 = static_cast<std::uint32_t>(std::countr_zero(options.ring_every));
  view.mode = options.completions;
  return view;
}

/// As the device expects a new queue in host memory of zeros.
inline void prepare_completions(const QueueView& view, const QueueLayout& layout) {
  for (std::uint32_t i = 0; i < layout.completion_entries; ++i)
    view.completions[i * completion_words + completion_last_word] = fresh_tail;
}

} // namespace shmemctl::mlx5
