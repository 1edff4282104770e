// Whether transports work here: each is created as in a job, connected to this process itself, and
// moves bytes. Library and file checks only explain failures.
#include <algorithm>
#include <functional>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"
#include "transports/direct/direct.h"
#include "transports/ibrc/ibrc.h"
#include "transports/libfabric/libfabric.h"
#include "transports/loopback.h"
#include "transports/ucx/ucx.h"

namespace shmemctl::doctor {

namespace {

constexpr double wait_s = 10;
constexpr std::chrono::seconds child_deadline{40};

using Make = std::function<std::unique_ptr<Transport>(const TransportSetup&)>;

/// One line of the child's output.
std::string attempt(const Make& make, const Environment& environment,
                    const std::vector<HcaPort>& nics) {
  const std::string port =
      nics.empty() ? "" : nics.front().device + ":" + std::to_string(nics.front().port);
  const Options options(environment);
  JobHealth health;
  TransportSetup setup;
  setup.options = &options;
  setup.health = &health;
  setup.timeout_s = wait_s;
  try {
    const Loopback result = run_loopback(*make(setup), nics, wait_s);
    return result.unusable.empty() ? "ok\t" + port + "\t" + result.connection + "\n"
                                   : "none\t" + port + "\t" + result.unusable + "\n";
  } catch (const Error& error) {
    return "bad\t" + port + "\t" + error.message() + "\t" + error.fix() + "\n";
  }
}

bool asked_for(const std::string& name, const Environment& environment) {
  const Options options(environment);
  const std::vector<std::string> named = split(options.text("TRANSPORT"), ',');
  const OptionValue& remote = options.value("REMOTE_TRANSPORT");
  return (remote.set() && remote.text == name && parse_remote_transport(remote.text)) ||
         (name == "ibgda" && options.boolean("IB_ENABLE_IBGDA")) ||
         std::find(named.begin(), named.end(), name) != named.end();
}

/// @param each_of the ports to be tried one by one; empty: those that the transport chooses
/// @param needed  whether it should be usable here; also true if the options request it
CheckResult try_transport(const std::string& name, const Make& make, const CheckContext& context,
                          const std::vector<HcaPort>& each_of, bool needed) {
  const ChildOutput answer = call_in_child(
      [&] {
        std::string lines;
        for (const HcaPort& port : each_of)
          lines += attempt(make, context.environment, {port});
        if (each_of.empty())
          lines = attempt(make, context.environment, {});
        return lines;
      },
      "the transport " + name, child_deadline);
  if (!answer.problem.empty())
    return failed(answer.problem, "loopback transfer in a child process",
                  "run bringup --transport " + name + " -v; look at dmesg");
  return judge_loopback(name, answer.text, needed || asked_for(name, context.environment));
}

} // namespace

CheckResult judge_loopback(const std::string& transport, const std::string& answer, bool needed) {
  const std::string what = "put, get, atomic and signal from this process to itself";
  const std::string by_hand = "run bringup --transport " + transport;
  std::vector<std::string> good, unusable, bad;
  std::string fix;
  for (const std::string& line : split(answer, '\n')) {
    const std::vector<std::string> parts = split(line, '\t');
    if (parts.size() < 3)
      continue;
    const std::string where = parts[1].empty() ? "" : parts[1] + ": ";
    if (parts[0] == "ok")
      good.push_back(parts[2].empty() ? parts[1] : parts[2]);
    else if (parts[0] == "none")
      unusable.push_back(where + parts[2]);
    else
      bad.push_back(where + parts[2]);
    if (parts[0] == "bad" && parts.size() > 3)
      fix = parts[3];
  }
  if (!bad.empty())
    return failed(join(bad, "; "), what, fix.empty() ? by_hand : fix);
  if (!unusable.empty()) {
    const std::string reason = "not usable here: " + join(unusable, "; ");
    return needed
               ? failed(reason, what, by_hand + "; shmemctl doctor --only rdma,library has details")
               : skipped(reason, what);
  }
  if (good.empty())
    return failed("the transport " + transport + " returned no result", what, by_hand);
  return passed("transfers data" + (good.front().empty() ? "" : ": " + join(good, "; ")), what);
}

CheckResult remote_transport_unknown(const CheckContext& context) {
  const Options options(context.environment);
  const OptionValue& value = options.value("REMOTE_TRANSPORT");
  if (!value.set())
    return skipped("no transport to other nodes is named");
  const std::string evidence = value.origin_name + "=" + printable(value.text, 64);
  const std::optional<Finding> unknown = check_remote_transport(options);
  if (!unknown)
    return passed("the transport to other nodes is one that NVSHMEM or this tool knows", evidence);
  return unknown->severity == Severity::error ? failed(unknown->message, evidence, unknown->fix)
                                              : warned(unknown->message, evidence, unknown->fix);
}

CheckResult transport_ibrc(const CheckContext& context) {
  if (const auto reason = no_rdma_device(context.node))
    return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine");
  std::vector<HcaPort> ports;
  for (const RdmaPort& port : active_rdma_ports(context.node))
    if (!port.nic->driver || *port.nic->driver != "efa") // has no reliable connections
      ports.push_back({port.nic->name, port.port->number});
  if (ports.empty())
    return skipped("no active port that ibrc can use");
  return try_transport("ibrc", make_ibrc_transport, context, ports, true);
}

namespace {

/// For both transports that post to mlx5 devices themselves.
CheckResult direct_transport(const std::string& name, const Make& make,
                             const CheckContext& context) {
  if (!context.sysroot.live())
    return skipped("needs the live machine");
  std::vector<HcaPort> ports;
  for (const RdmaPort& port : active_rdma_ports(context.node))
    if (port.nic->driver && *port.nic->driver == "mlx5_core")
      ports.push_back({port.nic->name, port.port->number});
  const bool software = Options(context.environment).value("SOFT_HCA_OVER").set();
  if (ports.empty() && !software && !asked_for(name, context.environment))
    return skipped("no mlx5 device with an active port on this node");
  return try_transport(name, make, context, ports, false);
}

} // namespace

CheckResult transport_ibdevx(const CheckContext& context) {
  return direct_transport("ibdevx", make_ibdevx_transport, context);
}

CheckResult transport_ibgda(const CheckContext& context) {
  return direct_transport("ibgda", make_ibgda_transport, context);
}

CheckResult transport_libfabric(const CheckContext& context) {
  if (!context.sysroot.live())
    return skipped("needs the live machine");
  return try_transport("libfabric", make_libfabric_transport, context, {}, false);
}

CheckResult transport_ucx(const CheckContext& context) {
  if (!context.sysroot.live())
    return skipped("needs the live machine");
  return try_transport(
      "ucx", [](const TransportSetup& setup) { return make_ucx_transport(setup); }, context, {},
      false);
}

} // namespace shmemctl::doctor
