#include "src/instruments/doctor/checks.h"
#include "tests/unit/instruments/doctor/scenario.h"
#include "transports/registry.h"

namespace shmemctl {

namespace {

std::function<CheckResult()> answer(const std::string& transport, const std::string& text,
                                    bool needed) {
  return [=] { return doctor::judge_loopback(transport, text, needed); };
}

} // namespace

Scenarios transport_scenarios() {
  const auto nothing = [](Machine&) {};
  const std::string moved = "put, get, atomic and signal";
  Scenarios all;
  for (const TransportRow& row : transport_registry()) {
    if (row.nics == TransportNics::none)
      continue;
    const std::string& name = row.name;
    const auto add = [&](const std::string& what, CheckStatus status, const std::string& fix,
                         const std::string& text, bool needed) {
      all.push_back(
          {"transport-" + name, what, nothing, status, moved, fix, answer(name, text, needed)});
    };
    add("two ports", CheckStatus::pass, "",
        "ok\tmlx5_0:1\tmlx5_0:1 -> mlx5_0:1, 2 QPs\nok\tmlx5_1:1\t\n", true);
    add("one of two ports fails", CheckStatus::fail, "bring the link up",
        "ok\tmlx5_0:1\t\nbad\tmlx5_1:1\tcannot put\tbring the link up\n", true);
    add("a failure that nobody asked about is one too", CheckStatus::fail, "bring the link up",
        "bad\t\tcannot put\tbring the link up\n", false);
    add("a port that cannot be used", CheckStatus::fail, "bringup --transport " + name,
        "none\tmlx5_0:1\tno address\n", true);
    add("not usable, and not needed", CheckStatus::skipped, "", "none\t\tno library\n", false);
    add("no answer", CheckStatus::fail, "bringup --transport " + name, "", false);
    all.push_back({"transport-" + name, "a copied tree",
                   [](Machine& m) { m.node = healthy_node(); }, CheckStatus::skipped, "", ""});
  }
  const auto with = [](const Environment& environment) {
    return [environment](Machine& m) { m.environment = environment; };
  };
  const std::string unknown = "remote-transport-unknown";
  all.push_back({unknown, "not set", nothing, CheckStatus::skipped, "", ""});
  all.push_back({unknown, "of NVSHMEM, in its own spelling",
                 with({{"NVSHMEM_REMOTE_TRANSPORT", "IBRC"}}), CheckStatus::pass,
                 "NVSHMEM_REMOTE_TRANSPORT=", ""});
  all.push_back({unknown, "of this tool", with({{"SHMEMCTL_REMOTE_TRANSPORT", "auto"}}),
                 CheckStatus::pass, "SHMEMCTL_REMOTE_TRANSPORT=auto", ""});
  all.push_back({unknown, "ibgda is none", with({{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}}),
                 CheckStatus::fail, "NVSHMEM_REMOTE_TRANSPORT=ibgda",
                 "unset NVSHMEM_REMOTE_TRANSPORT; export NVSHMEM_IB_ENABLE_IBGDA=1"});
  all.push_back({unknown, "ibgda alone",
                 with({{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}, {"NVSHMEM_IB_ENABLE_IBGDA", "1"}}),
                 CheckStatus::warning, "NVSHMEM_REMOTE_TRANSPORT=ibgda",
                 "unset NVSHMEM_REMOTE_TRANSPORT"});
  all.push_back({unknown, "a typing error", with({{"SHMEMCTL_REMOTE_TRANSPORT", "libfabrik"}}),
                 CheckStatus::fail, "SHMEMCTL_REMOTE_TRANSPORT=libfabrik",
                 "export SHMEMCTL_REMOTE_TRANSPORT=libfabric"});
  all.push_back({unknown, "this tool's name wins",
                 with({{"SHMEMCTL_REMOTE_TRANSPORT", "ucx"}, {"NVSHMEM_REMOTE_TRANSPORT", "x"}}),
                 CheckStatus::pass, "SHMEMCTL_REMOTE_TRANSPORT=ucx", ""});
  all.push_back({"transport-ibrc", "no RDMA device",
                 [](Machine& m) { m.node = node_without_rdma(); }, CheckStatus::skipped, "", ""});
  return all;
}

} // namespace shmemctl
