#include "src/instruments/bench/cases/transfer_buffers.h"

#include <algorithm>

namespace shmemctl::bench {

namespace {

constexpr std::size_t element_bytes = 8; ///< size of an element of spread payload

/// Finds where a slot's content differs from the pattern at `from`.
std::optional<Difference> compare_slot(const HostCaseContext& context, const TransferLayout& layout,
                                       const std::byte* slot, int writer, std::size_t from,
                                       int spread) {
  const std::size_t group = spread == 1 ? layout.size_bytes : element_bytes;
  const std::size_t step =
      spread == 1 ? layout.slot_bytes : group * static_cast<std::size_t>(spread);
  std::size_t at = 0;
  const auto moved = [&](std::optional<Difference> difference) {
    if (difference)
      difference->offset_bytes += at;
    return difference;
  };
  for (std::size_t done = 0; done < layout.size_bytes; done += group) {
    const std::size_t end = std::min(at + step, layout.slot_bytes);
    if (auto difference =
            moved(compare_pattern(slot + at, group, context.seed, writer, from + done)))
      return difference;
    at += group;
    if (auto difference = moved(compare_zero(slot + at, end - at)))
      return difference;
    at = end;
  }
  return moved(compare_zero(slot + at, layout.slot_bytes - at));
}

} // namespace

std::optional<WrongByte> stray_byte(const HostCaseContext& context, std::size_t offset_bytes,
                                    std::size_t size_bytes) {
  const auto difference = compare_zero(context.memory + offset_bytes, size_bytes);
  if (!difference)
    return std::nullopt;
  return WrongByte{context.pe, offset_bytes + difference->offset_bytes, 0, difference->found,
                   "a byte that nobody writes to"};
}

TransferLayout::TransferLayout(std::size_t size, int peer_count, int wanted_window, int spread)
    : size_bytes(size), peers(static_cast<std::uint64_t>(std::max(peer_count, 1))),
      slot_bytes((size * static_cast<std::size_t>(spread) + 63) / 64 * 64) {
  const auto wanted = static_cast<std::uint64_t>(std::max(wanted_window, 1));
  const std::uint64_t for_window = (wanted + peers - 1) / peers;
  const std::uint64_t fit = slots_bytes / (peers * std::max<std::size_t>(slot_bytes, 64));
  slots = std::min(for_window, std::max<std::uint64_t>(fit, 2));
  window = std::min(wanted, slots * peers);
}

std::optional<WrongByte> verify_slots(const HostCaseContext& context, const TransferLayout& layout,
                                      std::uint64_t area, int writer, std::uint64_t iterations,
                                      int spread) {
  const std::uint64_t operations = layout.operations_to(area, iterations);
  for (std::uint64_t slot = 0; slot < layout.slots; ++slot) {
    const std::size_t at = layout.slot_offset_bytes(area, slot);
    const bool used = operations > slot;
    const std::uint64_t turn = used ? (operations - slot - 1) / layout.slots : 0;
    const std::size_t from = (slot + turn) % variants * variant_step_bytes;
    const auto difference =
        used ? compare_slot(context, layout, context.memory + at, writer, from, spread)
             : compare_zero(context.memory + at, layout.slot_bytes);
    if (!difference)
      continue;
    const std::uint64_t iteration = (slot + turn * layout.slots) * layout.peers + area;
    const std::string what = "slot " + std::to_string(slot) + ", " +
                             (used ? "iteration " + std::to_string(iteration) +
                                         " with data of PE " + std::to_string(writer)
                                   : "which no iteration has used");
    return WrongByte{context.pe, at + difference->offset_bytes, difference->expected,
                     difference->found, what};
  }
  return std::nullopt;
}

} // namespace shmemctl::bench
