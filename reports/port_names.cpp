#include "reports/port_names.h"

#include "reports/json_view.h"

namespace shmemctl {

using nlohmann::json;

namespace {

bool is_interface(const json& port) {
  return view::member(port, "rdma") == false;
}

} // namespace

std::string port_name(const json& port) {
  const auto number = view::scalar(view::member(port, "port"));
  return view::text(port, "device", "?") + (number && !is_interface(port) ? ":" + *number : "");
}

void PortNames::learn(const json& hotspots) {
  for (const json& port : view::list(hotspots, "ports"))
    if (is_interface(port))
      interfaces_.emplace(view::text(port, "host"), view::text(port, "device"));
}

std::string PortNames::name(const std::string& host, const std::string& device,
                            const std::string& port) const {
  return interfaces_.count({host, device}) != 0 || port.empty() ? device : device + ":" + port;
}

} // namespace shmemctl
