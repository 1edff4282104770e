#include "src/instruments/bench/stall.h"

#include <algorithm>

#include <fmt/format.h>

namespace shmemctl::bench {

namespace {

constexpr std::size_t min_stall_samples = 5;
constexpr double others_share = 0.9;

/// "2.1 ms", "7.3 s".
std::string time_text(double time_s) {
  if (time_s >= 1)
    return fmt::format("{:.1f} s", time_s);
  return time_s >= 1e-3 ? fmt::format("{:.3g} ms", time_s * 1e3)
                        : fmt::format("{:.3g} us", time_s * 1e6);
}

} // namespace

std::optional<Stall> find_stall(const std::vector<double>& sample_s) {
  if (sample_s.size() < min_stall_samples)
    return std::nullopt;
  std::vector<double> sorted = sample_s;
  std::sort(sorted.begin(), sorted.end());
  // The longest sample is left out, so that it does not raise the bound it is compared with.
  const auto others = static_cast<double>(sorted.size() - 1);
  const double usual_s = sorted[static_cast<std::size_t>(others_share * (others - 1))];
  const auto longest = std::max_element(sample_s.begin(), sample_s.end());
  if (*longest < stall_factor * usual_s || *longest - usual_s < shortest_stall_s)
    return std::nullopt;
  return Stall{static_cast<std::size_t>(longest - sample_s.begin()), sample_s.size(), *longest,
               usual_s};
}

Finding stall_finding(const std::string& subject, const Stall& stall, const std::string& path,
                      const std::string& meanwhile) {
  std::string message =
      fmt::format("sample {} of {} took {}, where 9 of 10 take at most {}: {} stood still",
                  stall.sample + 1, stall.samples, time_text(stall.longest_s),
                  time_text(stall.usual_s), path.empty() ? "a PE or the network" : path);
  if (!meanwhile.empty())
    message += "; " + meanwhile;
  return {"bench-stall", Severity::warning, subject, message,
          "look for a link that went down (dmesg, shmemctl hotspots) and for a PE that was "
          "stopped, and measure again; p99 leaves such a pause out"};
}

} // namespace shmemctl::bench
