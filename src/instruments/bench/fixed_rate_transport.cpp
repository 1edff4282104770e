#include "src/instruments/bench/fixed_rate_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

#include "src/base/error.h"

namespace shmemctl::bench {

namespace {

/// The last part of a wait, which spins instead of sleeping: on most machines a timer is late by
/// less.
constexpr std::int64_t spin_ns = 300000;

std::int64_t raw_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

[[noreturn]] void refuse(const char* operation) {
  throw Error(ExitCode::usage, "self-test link", std::string("perform ") + operation,
              "it supports put only", "report this as a bug in shmemctl, with the command line");
}

} // namespace

FixedRateTransport::FixedRateTransport(std::uint64_t put_ns) : put_ns_(put_ns) {
  constexpr int readings = 1000, rounds = 5;
  std::int64_t best = 1000000;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t start = raw_ns();
    for (int i = 1; i < readings; ++i)
      raw_ns();
    best = std::min(best, (raw_ns() - start) / readings);
  }
  reading_ns_ = best;
}

void FixedRateTransport::start() {
  free_at_ns_ = raw_ns();
}

void FixedRateTransport::put(int context, const RemoteAddress& target, const void* source,
                             std::size_t size_bytes, bool blocking) {
  std::byte* base = regions_[static_cast<std::size_t>(target.region)].base;
  if (base == nullptr)
    throw Error(ExitCode::unavailable, "region " + std::to_string(target.region), "put",
                "it is not registered with this transport",
                "report this as a bug in shmemctl, with the command line");
  std::byte* bytes = base + target.offset_bytes;
  std::memcpy(bytes, source, size_bytes);
  if (damaged_ && *damaged_ >= target.offset_bytes && *damaged_ - target.offset_bytes < size_bytes)
    bytes[*damaged_ - target.offset_bytes] ^= std::byte{0xff};
  free_at_ns_ += static_cast<std::int64_t>(put_ns_);
  if (blocking)
    quiet(context);
}

void FixedRateTransport::quiet(int) {
  // A thread that spins for long on a busy machine may use up its time slice just when the wait
  // ends; a thread that slept gets the core at once.
  if (const std::int64_t left_ns = free_at_ns_ - raw_ns(); left_ns > 2 * spin_ns)
    std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns - spin_ns));
  // The clock readings at both ends take time too; half of each lies within the interval.
  while (raw_ns() + reading_ns_ < free_at_ns_) {
  }
}

void FixedRateTransport::get(int, void*, const RemoteAddress&, std::size_t, bool) {
  refuse("get");
}
std::uint64_t FixedRateTransport::atomic(int, const RemoteAddress&, const AtomicRequest&) {
  refuse("atomic");
}
void FixedRateTransport::put_signal(int, const RemoteAddress&, const void*, std::size_t,
                                    const RemoteAddress&, std::uint64_t, SignalOp, bool) {
  refuse("put with signal");
}

} // namespace shmemctl::bench
