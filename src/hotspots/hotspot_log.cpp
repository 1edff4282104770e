#include "src/hotspots/hotspot_log.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/report.h"
#include "reports/text.h"

namespace shmemctl {

namespace {

constexpr const char* home_and_clear = "\033[H\033[J";

std::string rate_text(const DirectionLoad& load) {
  if (!load.GBps)
    return load.packets_per_s ? fmt::format("{:.0f} packets/s", *load.packets_per_s) : "?";
  const std::string share = load.link_share ? fmt::format(" {:.0f}%", *load.link_share * 100) : "";
  return fmt::format("{:.4g} GB/s{}", *load.GBps, share);
}

std::string signs_text(const Hotspots& now, const PortLoad& load) {
  std::string text;
  for (const CounterSign& sign : now.signs)
    if (sign.host == load.host && sign.device == load.device && sign.port == load.port)
      text += fmt::format(" {} {}+{}", sign.rule->finding, safe_text(sign.counter), sign.delta);
  return text;
}

} // namespace

std::string log_lines(const Hotspots& now, const std::string& time) {
  std::string text;
  for (const PortLoad& load : now.loads)
    text += fmt::format("{} {} {} sent {} received {} {}{}{}\n", time, safe_text(load.host),
                        safe_text(load.name()), rate_text(load.sent), rate_text(load.received),
                        load.direction(), load.hot ? " HOT" : "", signs_text(now, load));
  return text;
}

void HotspotLog::show(const Hotspots& now, const NicThresholds& thresholds) {
  if (!page_) {
    out_ << log_lines(now, utc_now()) << std::flush;
    return;
  }
  const std::string page = hotspots_text(hotspots_json(now, thresholds), style_);
  out_ << home_and_clear << "shmemctl hotspots  " << utc_now() << "  (Ctrl-C ends)\n\n"
       << page << '\n'
       << findings_text(hotspot_findings(now, thresholds), style_) << std::flush;
}

} // namespace shmemctl
