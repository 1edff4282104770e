// What libfabric's provider for this node's NICs needs: the provider itself, its variables,
// GDRCopy.
#include <algorithm>

#include "src/base/text.h"
#include "src/doctor/checks.h"
#include "src/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr const char* chosen_by_size = "n_pes"; // a value that the transport works out

bool has_driver(const Node& node, const std::string& driver) {
  return std::any_of(node.nics.begin(), node.nics.end(),
                     [&](const Nic& nic) { return nic.driver && *nic.driver == driver; });
}

/// Whose rules the transport would follow here, and why.
FabricWish wish_of(const CheckContext& context) {
  const Options options(context.environment);
  for (const char* name : {"LIBFABRIC_PROFILE", "LIBFABRIC_PROVIDER"}) {
    const OptionValue& value = options.value(name);
    if (!value.text.empty())
      return {value.text, value.origin_name + " asks for it", true};
  }
  if (has_driver(context.node, "efa"))
    return {"efa", "there are EFA devices", true};
  if (has_driver(context.node, "cxi_core"))
    return {"cxi", "there are Slingshot NICs", true};
  if (!rdma_nics(context.node).empty())
    return {"verbs", "there are RDMA devices", false};
  return {"tcp", "there is no RDMA device", false};
}

std::string evidence_of(const FabricWish& wish, const fabric::ProviderPresence& presence) {
  std::string evidence = wish.provider + ", because " + wish.reason;
  if (!presence.library.empty())
    evidence += "; " + presence.library;
  if (!presence.provider.empty())
    evidence += "; fi_getinfo: " + presence.provider + " with " + name_list(presence.devices);
  return evidence;
}

} // namespace

CheckResult judge_libfabric_provider(const FabricWish& wish,
                                     const fabric::ProviderPresence& presence) {
  const std::string evidence = evidence_of(wish, presence);
  if (!presence.provider.empty())
    return passed("libfabric has the provider " + presence.provider, evidence);
  const std::string reason = "the transport libfabric cannot be used: " + presence.problem;
  return wish.needed ? failed(reason, evidence, presence.fix)
                     : warned(reason, evidence, presence.fix);
}

CheckResult libfabric_provider(const CheckContext& context) {
  if (!context.sysroot.live())
    return skipped("providers can be asked for on the machine itself only");
  const FabricWish wish = wish_of(context);
  const Options options(context.environment);
  return judge_libfabric_provider(
      wish, fabric::look_for_provider({options.text("LIBFABRIC_LIBRARY"), wish.provider,
                                       options.text("LIBFABRIC_PROFILE"),
                                       options.text("LIBFABRIC_INTERFACE"), 1}));
}

CheckResult libfabric_environment(const CheckContext& context) {
  const FabricWish wish = wish_of(context);
  const auto needs = fabric::needs_of(wish.provider);
  if (!needs || needs->variables.empty())
    return skipped("libfabric's provider " + wish.provider + " needs no variables");
  std::vector<std::string> seen, wrong, exports;
  bool required = false;
  for (const fabric::ProviderVariable& variable : needs->variables) {
    const auto found = context.environment.find(variable.name);
    if (found == context.environment.end()) {
      seen.push_back(variable.name + " is not set");
      continue;
    }
    seen.push_back(said(variable.name, found->second));
    if (variable.value == chosen_by_size || found->second == variable.value)
      continue;
    wrong.push_back(variable.name);
    exports.push_back(variable.name + "=" + variable.value);
    required = required || variable.required;
  }
  const std::string evidence = wish.provider + ", because " + wish.reason + "; " + join(seen, "; ");
  if (wrong.empty())
    return passed("what is not set the transport sets itself", evidence);
  const std::string reason = name_list(wrong) + " differs from what " + wish.provider + " needs";
  const std::string fix = "export " + join(exports, " ");
  return required ? failed(reason, evidence, fix) : warned(reason, evidence, fix);
}

CheckResult libfabric_gdrcopy(const CheckContext& context) {
  const FabricWish wish = wish_of(context);
  const auto needs = fabric::needs_of(wish.provider);
  if (!needs || !needs->gdrcopy)
    return skipped("libfabric's provider " + wish.provider + " does not need GDRCopy");
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  CheckResult result = gdrcopy(context);
  if (result.status != CheckStatus::warning)
    return result;
  // Here it is no slower way: staged atomic operations on GPU memory have no other.
  return failed("GDRCopy is not complete, and " + wish.provider +
                    " executes atomic operations on GPU memory through it",
                result.evidence, result.fix);
}

} // namespace shmemctl::doctor
