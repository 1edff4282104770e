// What limits the traffic of a point on GPUs: the links between them, or their own memory.
#pragma once

#include <optional>

#include "src/bench/case.h"
#include "src/bench/gpu_link.h"
#include "src/bench/link_limit.h"
#include "src/bench/measured_link.h"

namespace shmemctl::bench {

/// Whether all that this PE sends at that point goes from memory of a GPU straight to memory of a
/// GPU: not over a network, and not from or to a heap in host memory.
bool stays_between_gpus(Runtime& runtime, const Point& point);

/// Who moves what at a point of that case, for its limit: of a collective whose blocks go from
/// their writer to their reader, everybody to everybody; nothing of other collectives.
std::optional<Point> moves_of(const Case& body, const Point& point);

/// What the limit of a point says, and whether there can be one of a network.
struct GpuLimit {
  bool between_gpus = false; ///< no PE's traffic takes a network
  std::optional<LinkLimit> limit;
};
/// Collective, the same on all PEs of a machine. The measured limit of kernels (what a copy engine
/// moves, multiprocessors need not reach), else the model's.
/// @param links may be nullptr: the model's
GpuLimit gpu_limit_of(Runtime& runtime, const Point& moves, LinkMeter* links);

/// Bytes of an iteration by this PE that the limit is about.
std::uint64_t limited_bytes(const Case& body, const Point& point,
                            const std::optional<LinkLimit>& limit);

} // namespace shmemctl::bench
