// Checks whether transports work: each one is created as in a job, connected to this process
// itself, and moves bytes. The checks of libraries and files only explain failures.
#include <algorithm>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"
#include "transports/loopback.h"
#include "transports/registry.h"

namespace shmemctl::doctor {

namespace {

constexpr double wait_s = 10;
constexpr std::chrono::seconds child_deadline{40};

/// Tries the transport; returns one line of the child's output.
std::string attempt(const TransportRow& row, const Environment& environment,
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
    const Loopback result = run_loopback(*row.make(setup), nics, wait_s);
    return result.unusable.empty() ? "ok\t" + port + "\t" + result.connection + "\n"
                                   : "none\t" + port + "\t" + result.unusable + "\n";
  } catch (const Error& error) {
    return "bad\t" + port + "\t" + error.message() + "\t" + error.fix() + "\n";
  }
}

bool asked_for(const TransportRow& row, const Environment& environment) {
  const Options options(environment);
  const std::vector<std::string> named = split(options.text("TRANSPORT"), ',');
  const OptionValue& remote = options.value("REMOTE_TRANSPORT");
  return (remote.set() && remote.text == row.name && (row.uses & transport_use::remote) != 0) ||
         (row.name == "ibgda" && options.boolean("IB_ENABLE_IBGDA")) ||
         std::find(named.begin(), named.end(), row.name) != named.end();
}

/// @param each_of the ports to try one by one; empty to let the transport choose
/// @param needed  whether the transport should be usable; also true if the options request it
CheckResult try_transport(const TransportRow& row, const CheckContext& context,
                          const std::vector<HcaPort>& each_of, bool needed) {
  needed = needed || asked_for(row, context.environment);
  if (const std::string reason = why_absent(row); !reason.empty())
    return needed ? failed(reason, "loopback transfer", absent_fix(row))
                  : skipped(reason, "", absent_fix(row));
  const ChildOutput answer = call_in_child(
      [&] {
        std::string lines;
        for (const HcaPort& port : each_of)
          lines += attempt(row, context.environment, {port});
        if (each_of.empty())
          lines = attempt(row, context.environment, {});
        return lines;
      },
      "the transport " + row.name, child_deadline);
  if (!answer.problem.empty())
    return failed(answer.problem, "loopback transfer in a child process",
                  "run shmemctl bringup --transport " + row.name + " -v, and check dmesg");
  return judge_loopback(row.name, answer.text, needed);
}

/// Active ports that the transport can use.
std::vector<HcaPort> ports_of(const TransportRow& row, const Node& node) {
  std::vector<HcaPort> ports;
  for (const RdmaPort& port : active_rdma_ports(node)) {
    const auto& driver = port.nic->driver; // EFA has no RC queue pairs
    const bool fits = row.nics == TransportNics::mlx5 ? driver && *driver == "mlx5_core"
                                                      : !driver || *driver != "efa";
    if (fits)
      ports.push_back({port.nic->name, port.port->number});
  }
  return ports;
}

CheckResult check_loopback(const TransportRow& row, const CheckContext& context) {
  if (row.nics == TransportNics::rdma)
    if (const auto reason = no_rdma_device(context.node))
      return skipped(*reason);
  if (!context.sysroot.live())
    return skipped("needs the live machine");
  if (row.nics == TransportNics::chosen_by_library)
    return try_transport(row, context, {}, false);
  const std::vector<HcaPort> ports = ports_of(row, context.node);
  if (row.nics == TransportNics::mlx5) {
    const bool emulated = Options(context.environment).value("EMULATED_HCA_OVER").set();
    if (ports.empty() && !emulated && !asked_for(row, context.environment))
      return skipped("no mlx5 device with an active port on this node");
    return try_transport(row, context, ports, false);
  }
  if (ports.empty())
    return skipped("no active port that " + row.name + " can use");
  return try_transport(row, context, ports, true);
}

} // namespace

CheckResult judge_loopback(const std::string& transport, const std::string& answer, bool needed) {
  const std::string what = "put, get, atomic and signal from this process to itself";
  const std::string by_hand = "run shmemctl bringup --transport " + transport;
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
    return passed("the transport to other nodes is one that NVSHMEM or shmemctl has", evidence);
  return unknown->severity == Severity::error ? failed(unknown->message, evidence, unknown->fix)
                                              : warned(unknown->message, evidence, unknown->fix);
}

std::vector<Check> loopback_checks() {
  std::vector<Check> checks;
  for (const TransportRow& row : transport_registry()) {
    if (row.nics == TransportNics::none)
      continue;
    const char* const each =
        row.nics == TransportNics::chosen_by_library ? "" : " through each port";
    checks.push_back(
        {"transport-" + row.name, "transport",
         row.name + " loopback transfer" + each + ": " + row.summary,
         [&row](const CheckContext& context) { return check_loopback(row, context); }});
  }
  return checks;
}

} // namespace shmemctl::doctor
