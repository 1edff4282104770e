#include "src/runtime/transport_choice.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "transports/registry.h"

namespace shmemctl {

namespace {

std::string all_names() {
  return join(transport_names(0), ", ");
}

} // namespace

const std::vector<std::string>& transport_option_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"TRANSPORT", "REMOTE_TRANSPORT"};
    for (const TransportRow& row : transport_registry())
      for (const std::string& option : row.options)
        if (std::find(all.begin(), all.end(), option) == all.end())
          all.push_back(option);
    return all;
  }();
  return names;
}

const std::vector<std::string>& remote_candidates() {
  static const std::vector<std::string> names = transport_names(transport_use::automatic);
  return names;
}

std::vector<std::string> choose_transports(const Options& options, bool beyond_memory) {
  const std::string wanted = options.text("TRANSPORT");
  if (!wanted.empty()) {
    std::vector<std::string> chosen;
    for (const std::string& name : split(wanted, ',')) {
      const std::string trimmed(trim(name));
      if (!find_transport(trimmed) ||
          std::find(chosen.begin(), chosen.end(), trimmed) != chosen.end())
        throw Error(ExitCode::usage, "transport \"" + trimmed + "\"", "",
                    find_transport(trimmed) ? "named twice" : "unknown transport",
                    find_transport(trimmed)
                        ? "name each transport once"
                        : "choose from " + all_names() + ", separated by commas");
      chosen.push_back(trimmed);
    }
    return chosen;
  }
  std::vector<std::string> chosen = {"shm"};
  const std::string remote = options.text("REMOTE_TRANSPORT");
  const bool automatic = remote == automatic_transport;
  const bool named = options.value("REMOTE_TRANSPORT").set() && !automatic;
  const bool needed = beyond_memory || named;
  const bool ibgda = options.boolean("IB_ENABLE_IBGDA");
  const TransportRow* const row = find_transport(remote);
  const bool known =
      automatic || remote == "none" || (row && (row->uses & transport_use::remote) != 0);
  if (needed && !ibgda && !known) {
    const Finding unknown = unknown_remote_transport(remote, ibgda);
    throw Error(ExitCode::usage, unknown.subject, "", unknown.message, unknown.fix);
  }
  if (needed && remote != "none" && known)
    chosen.push_back(remote);
  if (needed && ibgda)
    chosen.emplace_back("ibgda"); // in addition to the network transport, as in NVSHMEM
  return chosen;
}

Reach reach_of_twin(const std::string& name, const Options& options) {
  JobHealth nobody;
  TransportSetup setup;
  setup.n_pes = 2;
  setup.options = &options;
  setup.health = &nobody;
  const std::unique_ptr<Transport> transport = make_transport(name, setup);
  const std::string info = transport->local_info();
  return transport->reach({0, 1, 1, info}, {1, 2, 2, info});
}

std::string to_text(const RemoteChoice& choice) {
  if (choice.chosen.empty())
    return "";
  std::vector<std::string> reasons;
  for (const RemoteChoice::Rejected& other : choice.rejected)
    reasons.push_back("not " + other.name + ": " + other.reason);
  return choice.chosen + (reasons.empty() ? "" : " (" + join(reasons, "; ") + ")");
}

std::string option_for(const std::string& remote, const Options& options) {
  const std::string named = options.text("TRANSPORT");
  if (named.empty())
    return "--remote-transport " + remote;
  std::vector<std::string> names;
  for (const std::string& name : split(named, ','))
    if (trim(name) == "shm")
      names.emplace_back("shm");
  names.push_back(remote);
  return "--transport " + join(names, ",");
}

} // namespace shmemctl
