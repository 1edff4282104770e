#include "src/runtime/transport_choice.h"

#include <algorithm>
#include <functional>

#include "src/base/error.h"
#include "src/base/options.h"
#include "src/base/text.h"
#include "transports/ibdevx/ibdevx.h"
#include "transports/ibgda/ibgda.h"
#include "transports/ibrc/ibrc.h"
#include "transports/libfabric/libfabric.h"
#include "transports/shm/shm.h"
#include "transports/ucx/ucx.h"

namespace shmemctl {

namespace {

struct Known {
  std::string name;
  std::function<std::unique_ptr<Transport>(const TransportSetup&)> make;
};

const std::vector<Known>& known_transports() {
  static const std::vector<Known> known = {
      {"shm", [](const TransportSetup&) { return make_shm_transport(); }},
      {"ibrc", [](const TransportSetup& setup) { return make_ibrc_transport(setup); }},
      {"ibdevx", [](const TransportSetup& setup) { return make_ibdevx_transport(setup); }},
      {"ibgda", [](const TransportSetup& setup) { return make_ibgda_transport(setup); }},
      {"libfabric", [](const TransportSetup& setup) { return make_libfabric_transport(setup); }},
      {"ucx", [](const TransportSetup& setup) { return make_ucx_transport(setup); }},
  };
  return known;
}

const Known* find_transport(const std::string& name) {
  const auto& all = known_transports();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Known& known) { return known.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string all_names() {
  std::string names;
  for (const Known& known : known_transports())
    names += (names.empty() ? "" : ", ") + known.name;
  return names;
}

} // namespace

const std::vector<std::string>& transport_option_names() {
  static const std::vector<std::string> names = {"TRANSPORT",
                                                 "REMOTE_TRANSPORT",
                                                 "IB_GID_INDEX",
                                                 "IB_ROCE_VERSION_NUM",
                                                 "IB_SL",
                                                 "IB_TRAFFIC_CLASS",
                                                 "IB_ADDR_FAMILY",
                                                 "IB_ADDR_RANGE",
                                                 "IB_MTU",
                                                 "IB_TIMEOUT",
                                                 "IB_RETRY_COUNT",
                                                 "IB_NUM_RC_PER_DEVICE",
                                                 "IB_DISABLE_DMABUF",
                                                 "IB_ATOMICS",
                                                 "IB_WRITE_ORDER",
                                                 "SRQ_DEPTH",
                                                 "MLX5_DEVICE",
                                                 "EMULATED_HCA_OVER",
                                                 "EMULATED_HCA_PLACEMENT",
                                                 "QP_DEPTH",
                                                 "IBGDA_NUM_RC_PER_PE",
                                                 "IBGDA_NUM_REQUESTS_IN_BATCH",
                                                 "LIBFABRIC_PROVIDER",
                                                 "LIBFABRIC_PROFILE",
                                                 "LIBFABRIC_INTERFACE",
                                                 "UCX_LIBRARY"};
  return names;
}

const std::vector<std::string>& remote_candidates() {
  // RDMA first; then what runs over TCP, whose puts of libfabric are the simpler ones.
  static const std::vector<std::string> names = {"ibrc", "libfabric", "ucx"};
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
                    "choose from " + all_names() + ", separated by commas");
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
  const bool known = automatic || parse_remote_transport(remote);
  if (needed && !ibgda && !known) {
    const Finding unknown = unknown_remote_transport(remote, ibgda);
    throw Error(ExitCode::usage, unknown.subject, "", unknown.message, unknown.fix);
  }
  if (needed && remote != "none" && known)
    chosen.push_back(remote);
  if (needed && ibgda)
    chosen.emplace_back("ibgda"); // beside the other one, as in NVSHMEM
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

std::unique_ptr<Transport> make_transport(const std::string& name, const TransportSetup& setup) {
  return find_transport(name)->make(setup);
}

} // namespace shmemctl
