#include <algorithm>

#include "src/runtime/gpu/host_staged_transport.h"

namespace shmemctl {

namespace {

/// Maximum size of one copy.
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

RemoteAddress advanced(const RemoteAddress& address, std::size_t bytes) {
  return {address.pe, address.region, address.offset_bytes + bytes};
}

} // namespace

void HostRanges::set(std::vector<HostRange> ranges) {
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(ranges));
  current_.store(&all_.back(), std::memory_order_release);
}

bool HostRanges::hold(const void* address, std::size_t size_bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::vector<HostRange>& ranges = *current_.load(std::memory_order_acquire);
  return std::any_of(ranges.begin(), ranges.end(), [&](const HostRange& range) {
    const auto base = reinterpret_cast<std::uintptr_t>(range.base);
    return begin >= base && begin - base <= range.size_bytes &&
           size_bytes <= range.size_bytes - (begin - base);
  });
}

void HostStagedTransport::put(int context, const RemoteAddress& target, const void* source,
                              std::size_t size_bytes, bool blocking) {
  if (ranges_.hold(source, size_bytes)) {
    below().put(context, target, source, size_bytes, blocking);
    return;
  }
  std::vector<std::byte> buffer(std::min(size_bytes, piece_bytes));
  for (std::size_t done = 0; done < size_bytes; done += buffer.size()) {
    buffer.resize(std::min(buffer.size(), size_bytes - done));
    memory_->copy(buffer.data(), static_cast<const std::byte*>(source) + done, buffer.size());
    below().put(context, advanced(target, done), buffer.data(), buffer.size(), true);
  }
}

void HostStagedTransport::get(int context, void* target, const RemoteAddress& source,
                              std::size_t size_bytes, bool blocking) {
  if (ranges_.hold(target, size_bytes)) {
    below().get(context, target, source, size_bytes, blocking);
    return;
  }
  std::vector<std::byte> buffer(std::min(size_bytes, piece_bytes));
  for (std::size_t done = 0; done < size_bytes; done += buffer.size()) {
    buffer.resize(std::min(buffer.size(), size_bytes - done));
    below().get(context, buffer.data(), advanced(source, done), buffer.size(), true);
    memory_->copy(static_cast<std::byte*>(target) + done, buffer.data(), buffer.size());
  }
}

void HostStagedTransport::put_signal(int context, const RemoteAddress& target, const void* source,
                                     std::size_t size_bytes, const RemoteAddress& signal,
                                     std::uint64_t signal_value, SignalOp op, bool blocking) {
  if (size_bytes == 0 || ranges_.hold(source, size_bytes)) {
    below().put_signal(context, target, source, size_bytes, signal, signal_value, op, blocking);
    return;
  }
  // All pieces except the last, then the last piece with the signal.
  const std::size_t last = (size_bytes - 1) % piece_bytes + 1;
  const std::size_t before = size_bytes - last;
  if (before > 0) {
    put(context, target, source, before, true);
    below().fence(context);
  }
  std::vector<std::byte> buffer(last);
  memory_->copy(buffer.data(), static_cast<const std::byte*>(source) + before, last);
  below().put_signal(context, advanced(target, before), buffer.data(), last, signal, signal_value,
                     op, true);
}

} // namespace shmemctl
