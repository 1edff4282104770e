// Layout of a QP's queues, doorbell records and shared state in one block of memory.
#pragma once

#include <bit>
#include <cstddef>
#include <unistd.h>

#include "src/abi/cqe.h"
#include "src/base/error.h"
#include "src/base/round_up.h"
#include "transports/mlx5/hca.h"

namespace shmemctl::mlx5 {

struct QpLayout {
  static constexpr std::size_t device_page_bytes = 4096; ///< page size of the device on any host
  /// Offsets in the page of doorbell records. A QP's record has two words, of which the send record
  /// is the second; a CQ's record has two words, of which the consumer index is the first.
  static constexpr std::size_t queue_records = 0, send_record = 4, completions_record = 64;
  /// Offset of the emulated HCA's doorbell register in the page of records. It is away from the
  /// records, since the emulated HCA polls it.
  static constexpr std::size_t emulated_doorbell = 1024;

  std::size_t completions_offset; ///< WQEs are at 0
  std::size_t records_offset;
  std::size_t words_offset;
  std::size_t size_bytes;
  std::uint32_t cqe_count;
};

/// The page size in the options; if it is 0, that of the operating system, such as 4 KiB, or 64 KiB
/// on some arm64 hosts.
inline std::size_t page_bytes_of(const QpOptions& options) {
  static const auto system = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return options.page_bytes > 0 ? options.page_bytes : system;
}

/// @throw Error (usage) if the options are not consistent
inline QpLayout qp_layout(const QpOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(ExitCode::usage, "mlx5 send queue", "", what,
                "choose powers of two: 16 to 32768 WQEBBs, pages of 4096 bytes or more, and "
                "completions at least four times per queue");
  };
  if (!std::has_single_bit(options.wqebbs) || options.wqebbs < 16 || options.wqebbs > max_qp_wqebbs)
    refuse("invalid length of " + std::to_string(options.wqebbs) + " WQEBBs");
  if (!std::has_single_bit(options.signal_every) || options.signal_every > options.wqebbs / 4)
    refuse("invalid signalling: completions every " + std::to_string(options.signal_every) +
           " of " + std::to_string(options.wqebbs) + " WQEBBs");
  if (!std::has_single_bit(options.ring_every))
    refuse("invalid doorbell interval of " + std::to_string(options.ring_every) + " WQEBBs");

  const std::size_t page_bytes = page_bytes_of(options);
  if (!std::has_single_bit(page_bytes) || page_bytes < QpLayout::device_page_bytes)
    refuse("invalid page size of " + std::to_string(page_bytes) + " bytes");
  const auto pages = [page_bytes](std::size_t bytes) { return round_up(bytes, page_bytes); };
  QpLayout layout{};
  layout.cqe_count = options.completions == CqMode::collapsed ? 1 : options.wqebbs;
  layout.completions_offset = pages(options.wqebbs * wqebb_bytes);
  layout.records_offset =
      layout.completions_offset + pages(std::size_t{layout.cqe_count} * cqe_words * 8);
  layout.words_offset = layout.records_offset + page_bytes;
  layout.size_bytes = layout.words_offset + pages(sizeof(QpState));
  return layout;
}

/// The view of a QP laid out at `base`, with the emulated doorbell register. The caller sets the
/// QPN, and the register of a real HCA.
inline QpView queue_view(const QpOptions& options, const QpLayout& layout, void* base) {
  auto* bytes = static_cast<std::byte*>(base);
  std::byte* records = bytes + layout.records_offset;
  QpView view{};
  view.wqes = reinterpret_cast<std::uint64_t*>(bytes);
  view.completions = reinterpret_cast<std::uint64_t*>(bytes + layout.completions_offset);
  view.send_record = reinterpret_cast<std::uint32_t*>(records + QpLayout::send_record);
  view.completions_record =
      reinterpret_cast<std::uint32_t*>(records + QpLayout::completions_record);
  view.doorbell = reinterpret_cast<std::uint64_t*>(records + QpLayout::emulated_doorbell);
  view.words = reinterpret_cast<QpState*>(bytes + layout.words_offset);
  view.wqebbs_log2 = static_cast<std::uint32_t>(std::countr_zero(options.wqebbs));
  view.signal_log2 = static_cast<std::uint32_t>(std::countr_zero(options.signal_every));
  view.ring_log2 = static_cast<std::uint32_t>(std::countr_zero(options.ring_every));
  view.mode = options.completions;
  return view;
}

/// Initializes the CQEs of a new queue, whose memory is zero, as the device expects them.
inline void prepare_completions(const QpView& view, const QpLayout& layout) {
  for (std::uint32_t i = 0; i < layout.cqe_count; ++i)
    view.completions[i * cqe_words + cqe_last_word] = unwritten_tail;
}

} // namespace shmemctl::mlx5
