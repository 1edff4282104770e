// Kernels of the tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/abi/device_job.h"

namespace shmemctl::test {

enum class Who { thread, warp, block };

/// How a kernel's blocks share a transfer: each takes a piece of its own.
struct Shape {
  int blocks = 1, threads = 32;
};

/// heap + to_offset of `pe` = heap + from_offset of mine, `times` times.
void launch_put(const DeviceJob& job, Who who, Shape shape, std::size_t to_offset,
                std::size_t from_offset, std::size_t size_bytes, int pe, int times = 1);
/// The other way round.
void launch_get(const DeviceJob& job, Who who, Shape shape, std::size_t to_offset,
                std::size_t from_offset, std::size_t size_bytes, int pe, int times = 1);

/// What keeps the signal of a ping-pong behind its data.
enum class Order { put_signal, fence, quiet };

/// PE 0 and PE 1 send each other `size_bytes` (0: a signal alone) with a signal, `rounds` times.
/// Counts words that are not the round's number behind the signal into `wrong`.
void launch_ping_pong(const DeviceJob& job, Who who, int threads, std::size_t data_offset,
                      std::size_t signal_offset, std::size_t size_bytes, std::uint64_t first_round,
                      std::uint64_t rounds, std::uint64_t* wrong, Order order = Order::put_signal);

/// `rounds` barriers; before each, every PE puts its round into all PEs' words at `offset`, behind
/// it counts those that are not there into `wrong`.
void launch_barriers(const DeviceJob& job, Who who, int threads, std::size_t offset,
                     std::uint64_t rounds, std::uint64_t* wrong);
/// Kernels that do nothing but barriers.
void launch_bare_barriers(const DeviceJob& job, Who who, int threads, std::uint64_t rounds);

/// `times` puts of 8 bytes with a quiet each, by a warp.
void launch_put_latency(const DeviceJob& job, std::size_t offset, int pe, std::uint64_t times);

} // namespace shmemctl::test
