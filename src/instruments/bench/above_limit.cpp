#include "src/instruments/bench/above_limit.h"

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/instruments/bench/rows.h"

namespace shmemctl::bench {

namespace {

constexpr double measured_tolerance = 0.05, rate_tolerance = 0.02;

enum class LimitKind {
  measured,   ///< together with each sample or earlier in the run
  gpu_memory, ///< caches can exceed it
  gpu_link,   ///< the node model's rate of links between GPUs, or to the host
  wire        ///< the rate of NIC ports
};

/// By the names that bandwidth_limit.cpp and moe/links.cpp give limits.
LimitKind kind_of(const std::string& limit) {
  if (limit == reference_name || limit == direct_name ||
      limit.find("measured") != std::string::npos)
    return LimitKind::measured;
  if (limit.starts_with("memory of "))
    return LimitKind::gpu_memory;
  return limit.find("by the model") != std::string::npos ? LimitKind::gpu_link : LimitKind::wire;
}

/// Whether nothing can exceed the limit, if it is right.
bool is_rate(LimitKind kind) {
  return kind == LimitKind::gpu_link || kind == LimitKind::wire;
}

std::string note_of(const std::string& limit) {
  if (limit == reference_name)
    return "above its limit: memcpy is timed along with it and is no bound: the C library chooses "
           "its "
           "stores by size, and stores that keep the target in the cache can be faster; or "
           "something else on the machine held memcpy up";
  if (limit == direct_name)
    return "above its limit: the call without the proxy is timed along with it, and something else "
           "on "
           "the machine held it up";
  switch (kind_of(limit)) {
  case LimitKind::measured:
    return "above its limit: that was measured once in the run, with other sizes and kernels";
  case LimitKind::gpu_memory:
    return "above its limit: the GPU's cache held part of the data, which its memory did not have "
           "to move";
  case LimitKind::gpu_link:
    return "above its limit: no link exceeds its rate, so data took another way, or the node model "
           "has another rate than the link";
  case LimitKind::wire:
    break;
  }
  return "above its limit: no link exceeds its rate, so data took another way (a NIC in loopback, "
         "a second port), or the node model has another rate than the link (a bond, a virtual "
         "device)";
}

std::string fix_of(LimitKind kind) {
  switch (kind) {
  case LimitKind::measured:
    return "measure longer (-D 5) on a machine that does nothing else";
  case LimitKind::gpu_memory:
    return "pass sizes larger than the GPU's L2 cache, such as --sizes 256M";
  case LimitKind::gpu_link:
    return "compare the rate with the links' own: nvidia-smi nvlink -s, or for PCIe nvidia-smi "
           "--query-gpu=pcie.link.gen.max,pcie.link.width.max --format=csv";
  case LimitKind::wire:
    break;
  }
  return "compare with the NIC's own counters: shmemctl hotspots --during CMD";
}

std::string where(const ResultRow& row) {
  std::string text = row.case_name;
  const auto size = row.params.find("size_bytes");
  if (size != row.params.end() && size->is_number_unsigned())
    text += " " + format_size_bytes(size->get<std::uint64_t>());
  const auto phase = row.params.find("phase");
  if (phase != row.params.end() && phase->is_string())
    text += " " + phase->get<std::string>();
  return text;
}

} // namespace

void note_above_limit(ResultRow& row) {
  if (!row.link_fraction || !row.limited_by)
    return;
  const double tolerance =
      kind_of(*row.limited_by) == LimitKind::measured ? measured_tolerance : rate_tolerance;
  if (*row.link_fraction > 1 + tolerance)
    row.limit_note = note_of(*row.limited_by);
}

std::optional<Finding> above_limit_finding(const std::string& subject,
                                           const std::vector<ResultRow>& rows) {
  const ResultRow* worst = nullptr;
  std::size_t above = 0, with_limit = 0;
  LimitKind kind = LimitKind::measured; ///< of the worst
  for (const ResultRow& row : rows) {
    with_limit += row.link_fraction ? 1 : 0;
    if (row.limit_note.empty())
      continue;
    ++above;
    const LimitKind of_row = kind_of(*row.limited_by);
    // An excess over a link's rate is more significant than one over what is no strict bound.
    if (!worst || (is_rate(of_row) && !is_rate(kind)) ||
        (is_rate(of_row) == is_rate(kind) && *row.link_fraction > *worst->link_fraction)) {
      worst = &row;
      kind = of_row;
    }
  }
  if (!worst)
    return std::nullopt;
  return Finding{"bench-above-limit", is_rate(kind) ? Severity::warning : Severity::info, subject,
                 fmt::format("{} of {} rows with a limit are above it, most {}: {:.1f}% of {}; {}",
                             above, with_limit, where(*worst), *worst->link_fraction * 100,
                             *worst->limited_by, worst->limit_note),
                 fix_of(kind)};
}

} // namespace shmemctl::bench
