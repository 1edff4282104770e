#include "src/instruments/bench/moe/host_backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace shmemctl::moe {

namespace {

template <class T>
void fill_bytes(std::vector<T>& values, std::byte byte) {
  if (!values.empty()) // an empty vector may have no memory
    std::memset(values.data(), static_cast<int>(byte), values.size() * sizeof(T));
}

} // namespace

HostBackend::HostBackend(Rma& rma, std::byte* memory, const Setup& setup, Mutation mutation)
    : rma_(rma), memory_(memory), setup_(setup), mutation_(std::move(mutation)), me_(rma.pe()),
      mine_((*setup.routing)[static_cast<std::size_t>(rma.pe())]), row_fields_(setup),
      combined_(static_cast<std::size_t>(tokens()) * static_cast<std::size_t>(setup.shape.hidden)),
      combined_weights_(setup.combined_weights ? static_cast<std::size_t>(tokens()) *
                                                     static_cast<std::size_t>(setup.shape.top_k)
                                               : 0),
      layout_(setup), active_routing_(*setup.routing) {
  for (std::int32_t token = 0; token < tokens(); ++token)
    fill_row(setup_, row_fields_, me_, token, send_row(token));
}

std::uint64_t HostBackend::load(const std::uint64_t* word) {
  // atomic_ref needs a mutable object, but this only loads.
  return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire);
}

void HostBackend::put(std::byte* target, const std::byte* source, std::size_t size_bytes,
                      std::int32_t rank) {
  const std::size_t chunk_bytes = chunk_bytes_ > 0 ? chunk_bytes_ : size_bytes;
  for (std::size_t at = 0; at < size_bytes; at += chunk_bytes)
    rma_.put(target + at, source + at, std::min(chunk_bytes, size_bytes - at), rank, 0, false);
}

void HostBackend::select_direction(Direction direction) {
  const auto chunk_bytes = static_cast<std::size_t>(settings(direction).chunk_bytes.value_or(0));
  chunk_bytes_ = chunk_bytes < row_bytes(direction) ? chunk_bytes : 0;
  lost_ = false;
}

Settings HostBackend::settings(Direction direction) const {
  Settings own;
  own.chunk_bytes = static_cast<std::int32_t>(row_bytes(direction));
  return filled(given(direction), own);
}

std::string host_invalid_reason(const Setup& setup, Direction direction, const Settings& wanted) {
  const auto row_bytes = static_cast<std::int32_t>(HostBackend::row_bytes(setup, direction));
  Settings own;
  own.chunk_bytes = row_bytes;
  if (std::string unknown = unknown_setting(wanted, own); !unknown.empty())
    return unknown;
  if (wanted.chunk_bytes && (*wanted.chunk_bytes < 1 || *wanted.chunk_bytes > row_bytes))
    return fmt::format("chunk_bytes {} is not from 1 to {}, a row of a {}", *wanted.chunk_bytes,
                       row_bytes, to_string(direction));
  return "";
}

std::vector<Settings> HostBackend::candidates(Direction direction) const {
  constexpr std::size_t min_bytes = 256, unit_bytes = 64;
  std::vector<Settings> all;
  const std::size_t row = row_bytes(direction);
  for (const std::size_t parts : {1, 2, 4, 8}) {
    const std::size_t chunk = (row + parts - 1) / parts;
    Settings one;
    one.chunk_bytes = static_cast<std::int32_t>(
        parts == 1 ? row : (chunk + unit_bytes - 1) / unit_bytes * unit_bytes);
    if (parts == 1 || (chunk >= min_bytes && one.chunk_bytes != all.back().chunk_bytes))
      all.push_back(one);
  }
  return all;
}

void HostBackend::put_row(std::byte* target, const std::byte* row, std::int32_t rank) {
  if (mutates(Mutation::Kind::lost_row) && !std::exchange(lost_, true))
    return;
  if (mutates(Mutation::Kind::skipped_chunk) && !skipped_) {
    skipped_ = true;
    const std::size_t chunk = row_fields_.payload_bytes() / 4;
    const std::size_t end = row_fields_.payload_bytes();
    put(target, row, end - chunk, rank);
    return put(target + end, row + end, row_fields_.stride_bytes() - end, rank);
  }
  put(target, row, row_fields_.stride_bytes(), rank);
}

void HostBackend::fence_rows() {
  if (!mutates(Mutation::Kind::no_fence))
    rma_.fence();
}

void HostBackend::signal(std::uint64_t* word, std::uint64_t value, std::int32_t rank) {
  rma_.put_signal(nullptr, nullptr, 0, word, value, SignalOp::set, rank, 0, false);
}

void HostBackend::wait_for_all(const std::vector<Awaited>& all,
                               const std::function<bool(std::int32_t)>& is_there, const char* step,
                               Times& times) {
  const Clock::time_point begin = Clock::now();
  std::vector<bool> seen(static_cast<std::size_t>(setup_.shape.n_ranks));
  const auto look = [&](const Awaited& awaited) {
    const auto slot = static_cast<std::size_t>(awaited.rank);
    if (!seen[slot] && is_there(awaited.rank)) {
      seen[slot] = true;
      times.wait_us[slot] += us_since(begin);
    }
    return seen[slot];
  };
  const auto rank_timed_out = [&] {
    return setup_.rank_timeout_us > 0 && us_since(begin) > setup_.rank_timeout_us;
  };
  // Waits for one rank after another, so that a timeout names the missing one. A rank that arrives
  // meanwhile is recorded at its own time.
  for (const Awaited& awaited : all) {
    if (is_masked(awaited.rank))
      continue;
    rma_.wait(
        [&] {
          std::for_each(all.begin(), all.end(), look);
          return look(awaited) || rank_timed_out();
        },
        step, awaited.by);
    if (!look(awaited))
      mask(awaited.rank);
  }
}

void HostBackend::mask(std::int32_t rank) {
  masked_.insert(rank);
  active_routing_ = without_ranks(setup_.shape, *setup_.routing, me_, masked());
}

void HostBackend::add_up(const std::vector<const std::uint16_t*>& rows, const std::uint16_t* begin,
                         std::size_t channels, std::uint16_t* out) {
  // Sums row by row, so that each row is read in the order of memory.
  std::vector<float> totals(channels);
  if (begin)
    std::transform(begin, begin + channels, totals.begin(), float_of_bf16);
  for (const std::uint16_t* row : rows)
    for (std::size_t channel = 0; channel < channels; ++channel)
      totals[channel] = add(totals[channel], float_of_bf16(row[channel]));
  std::transform(totals.begin(), totals.end(), out, bf16_of_float);
}

void HostBackend::add_up_weights(const std::vector<const std::uint16_t*>& rows, float* out) const {
  if (!setup_.combined_weights)
    return;
  std::fill_n(out, setup_.shape.top_k, 0.0F);
  for (const std::uint16_t* row : rows)
    for (std::int32_t k = 0; k < setup_.shape.top_k; ++k)
      out[k] = add(out[k], weights_of(row)[k]);
}

void HostBackend::corrupt() {
  if (const std::vector<std::byte*> rows = received_rows(); !rows.empty())
    rows.back()[0] ^= std::byte{1};
  if (!combined_.empty())
    combined_.back() ^= 1U;
}

void HostBackend::poison_common() {
  layout_.buffers.set_guards(memory_);
  fill_bytes(combined_, poison_byte);
  fill_bytes(combined_weights_, poison_byte);
}

std::optional<std::string> HostBackend::verify_dispatch() {
  // Expects its own rows, too, but none of masked ranks.
  std::vector<RowSource> expected = expected_rows(setup_.shape, *setup_.routing, me_);
  std::erase_if(expected, [this](const RowSource& row) { return is_masked(row.rank); });
  const std::vector<std::byte*> rows = received_rows();
  if (rows.size() != expected.size())
    return fmt::format("rank {} received {} rows, and the routing sends {}", me_, rows.size(),
                       expected.size());
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (const auto wrong = wrong_row(setup_, row_fields_, expected[row], rows[row]))
      return fmt::format("rank {}, row {}: {}", me_, row, *wrong);
  if (const auto wrong = wrong_counts_or_gaps(rows.size()))
    return fmt::format("rank {}: {}", me_, *wrong);
  if (const auto broken = layout_.buffers.broken_guard(memory_))
    return fmt::format("rank {}: something was written outside the {}", me_, *broken);
  return std::nullopt;
}

std::optional<std::string> HostBackend::verify_combine() {
  for (std::int32_t token = 0; token < tokens(); ++token)
    if (const auto wrong = wrong_combined(
            setup_, me_, token, active_routing_[static_cast<std::size_t>(me_)].choices(token),
            combined_row(token)))
      return fmt::format("rank {}: {}", me_, *wrong);
  for (std::int32_t token = 0; setup_.combined_weights && token < tokens(); ++token)
    if (const auto wrong = wrong_weights(setup_, me_, token, combined_weights_of(token)))
      return fmt::format("rank {}: {}", me_, *wrong);
  if (const auto broken = layout_.buffers.broken_guard(memory_))
    return fmt::format("rank {}: something was written outside the {}", me_, *broken);
  return std::nullopt;
}

std::size_t host_backend_bytes(const Setup& setup) {
  return HostLayout(setup).buffers.size_bytes();
}

std::unique_ptr<Backend> make_host_backend(Rma& rma, std::byte* memory, const Setup& setup,
                                           Mutation mutation) {
  return setup.mode == Mode::high_throughput
             ? make_host_high_throughput(rma, memory, setup, std::move(mutation))
             : make_host_low_latency(rma, memory, setup, std::move(mutation));
}

} // namespace shmemctl::moe
