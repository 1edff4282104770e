#include "transports/ucx/lanes.h"

#include <algorithm>
#include <array>

#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Parses "0:tcp/lo.0" (with a path) or "0:tcp/lo": the resource's number, transport, device, path.
bool parse_resource(std::string_view word, bool has_path, UcxLane& lane) {
  const std::size_t colon = word.find(':');
  const std::size_t slash = word.find('/');
  if (colon == std::string_view::npos || slash == std::string_view::npos || slash < colon)
    return false;
  lane.transport = word.substr(colon + 1, slash - colon - 1);
  std::string_view device = word.substr(slash + 1);
  if (has_path)
    device = device.substr(0, std::min(device.rfind('.'), device.size()));
  lane.device = device;
  return !lane.transport.empty() && !lane.device.empty();
}

bool is_memory(const UcxLane& lane) {
  constexpr std::array names = {std::string_view("self"), std::string_view("posix"),
                                std::string_view("sysv"), std::string_view("xpmem"),
                                std::string_view("cma"),  std::string_view("knem")};
  return std::find(names.begin(), names.end(), lane.transport) != names.end();
}

/// The port of "mlx5_0:2", or port 1 of "eth0"; nothing if the text after ":" is not a port number.
std::optional<HcaPort> port_of(const std::string& device) {
  const std::size_t colon = device.rfind(':');
  if (colon == std::string::npos)
    return HcaPort{device, 1};
  const std::optional<long long> port = parse_integer(device.substr(colon + 1));
  if (!port || *port < 1 || *port > 255)
    return std::nullopt;
  return HcaPort{device.substr(0, colon), static_cast<int>(*port)};
}

} // namespace

std::vector<UcxLane> parse_lanes(std::string_view printed) {
  std::vector<UcxLane> lanes;
  for (const std::string& line : split(printed, '\n')) {
    const std::size_t at = line.find("lane[");
    const std::size_t arrow = line.find("-> ");
    if (at == std::string::npos || arrow == std::string::npos || arrow < at)
      continue;
    const std::vector<std::string> left =
        split_blanks(std::string_view(line).substr(at, arrow - at));
    UcxLane lane;
    if (left.size() >= 2 && parse_resource(left[1], true, lane))
      lanes.push_back(lane);
  }
  return lanes;
}

std::vector<UcxLane> parse_atomics(std::string_view printed) {
  constexpr std::string_view title = "atomics: ";
  std::vector<UcxLane> lanes;
  const std::size_t at = printed.find(title);
  if (at == std::string_view::npos)
    return lanes;
  std::string_view line = printed.substr(at + title.size());
  line = line.substr(0, std::min(line.find('\n'), line.size()));
  for (const std::string& part : split(line, ',')) {
    UcxLane lane;
    if (parse_resource(trim(part), false, lane))
      lanes.push_back(lane);
  }
  return lanes;
}

std::vector<UcxLane> parse_resources(std::string_view printed) {
  std::vector<UcxLane> lanes;
  for (const std::string& line : split(printed, '\n')) {
    const std::size_t at = line.find("resource ");
    if (at == std::string::npos)
      continue;
    // "resource 0  :  md 0  dev 0  flags -- tcp/lo": the name is the last word.
    const std::vector<std::string> words = split_blanks(std::string_view(line).substr(at));
    UcxLane lane;
    if (parse_resource(":" + words.back(), false, lane))
      lanes.push_back(lane);
  }
  return lanes;
}

std::string to_text(const std::vector<UcxLane>& lanes) {
  std::vector<std::string> texts;
  for (const UcxLane& lane : lanes) {
    const std::string text = lane.transport + "/" + lane.device;
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(text);
  }
  return join(texts, ", ");
}

std::optional<HcaPort> only_port(const std::vector<UcxLane>& lanes) {
  const auto same = [&](const UcxLane& lane) { return lane.device == lanes[0].device; };
  if (lanes.empty() || all_memory(lanes) || !std::all_of(lanes.begin(), lanes.end(), same))
    return std::nullopt;
  return port_of(lanes[0].device);
}

std::vector<HcaPort> ports_of(const std::vector<UcxLane>& lanes) {
  std::vector<HcaPort> ports;
  for (const UcxLane& lane : lanes)
    if (const auto port = is_memory(lane) ? std::nullopt : port_of(lane.device);
        port && std::find(ports.begin(), ports.end(), *port) == ports.end())
      ports.push_back(*port);
  return ports;
}

bool all_memory(const std::vector<UcxLane>& lanes) {
  return std::all_of(lanes.begin(), lanes.end(), is_memory);
}

bool some_memory(const std::vector<UcxLane>& lanes) {
  return std::any_of(lanes.begin(), lanes.end(), is_memory);
}

} // namespace shmemctl
