#include "transports/registry.h"

#include <algorithm>
#include <stdexcept>

#include "transports/ibdevx/ibdevx.h"
#include "transports/ibgda/ibgda.h"
#include "transports/ibrc/ibrc.h"
#include "transports/libfabric/libfabric.h"
#include "transports/shm/shm.h"
#include "transports/ucx/ucx.h"

namespace shmemctl {

namespace {

// Libraries are opened at run time, but their headers are needed at build time.
#if __has_include(<infiniband/verbs.h>)
constexpr bool has_verbs = true;
#else
constexpr bool has_verbs = false;
#endif
#if __has_include(<rdma/fabric.h>)
constexpr bool has_libfabric = true;
#else
constexpr bool has_libfabric = false;
#endif
#if __has_include(<ucp/api/ucp.h>)
constexpr bool has_ucx = true;
#else
constexpr bool has_ucx = false;
#endif

/// Options of all transports that create RC queue pairs, followed by those of one transport.
std::vector<std::string> rc_options(const std::vector<std::string>& own) {
  std::vector<std::string> all = {
      "IB_GID_INDEX",      "IB_ROCE_VERSION_NUM", "IB_SL",
      "IB_TRAFFIC_CLASS",  "IB_ADDR_FAMILY",      "IB_ADDR_RANGE",
      "IB_TIMEOUT",        "IB_RETRY_COUNT",      "IB_NUM_RC_PER_DEVICE",
      "IB_DISABLE_DMABUF", "IB_WRITE_ORDER",      "VERBS_LIBRARY",
      "GPUDIRECT"};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

/// The same for transports that post mlx5 WQEs themselves.
std::vector<std::string> mlx5_options(const std::vector<std::string>& own) {
  std::vector<std::string> all =
      rc_options({"MLX5_DEVICE", "EMULATED_HCA_OVER", "EMULATED_HCA_PLACEMENT", "QP_DEPTH",
                  "DEVICE_PATH", "IB_ENABLE_IBGDA", "IBGDA_ENABLE_MULTI_PORT"});
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<TransportRow> make_rows() {
  using namespace transport_use;
  constexpr unsigned network = remote | automatic | carrier;
  // Transports for RDMA only precede those that also run over TCP. Of the latter, libfabric comes
  // first, since its puts are simpler.
  // clang-format off
  return {
      {"shm", "loads and stores into memory that PEs of a node share", carrier, TransportNics::none, {},
       [](const TransportSetup&) { return make_shm_transport(); }},
      {"ibrc", "RC queue pairs of libibverbs", network, TransportNics::rdma,
       rc_options({"IB_MTU", "IB_ATOMICS", "SRQ_DEPTH"}), make_ibrc_transport,
       "libibverbs-dev (rdma-core-devel)", has_verbs},
      {"ibdevx", "mlx5 queue pairs to which the CPU posts", remote, TransportNics::mlx5,
       mlx5_options({}), make_ibdevx_transport},
      {"ibgda", "mlx5 queue pairs to which kernels post", 0, TransportNics::mlx5,
       mlx5_options({"IBGDA_NUM_RC_PER_PE", "IBGDA_NUM_REQUESTS_IN_BATCH", "IBGDA_RC_MAP_BY"}), make_ibgda_transport},
      {"libfabric", "reliable datagrams of libfabric", network, TransportNics::chosen_by_library,
       {"LIBFABRIC_PROVIDER", "LIBFABRIC_PROFILE", "LIBFABRIC_INTERFACE", "LIBFABRIC_LIBRARY", "HEAP", "GPUDIRECT"},
       make_libfabric_transport, "libfabric-dev", has_libfabric},
      {"ucx", "UCX (libucp)", network, TransportNics::chosen_by_library, {"UCX_LIBRARY"},
       [](const TransportSetup& setup) { return make_ucx_transport(setup); }, "libucx-dev (ucx-devel)", has_ucx},
  };
  // clang-format on
}

} // namespace

const std::vector<TransportRow>& transport_registry() {
  static const std::vector<TransportRow> rows = make_rows();
  return rows;
}

const TransportRow* find_transport(std::string_view name) {
  const std::vector<TransportRow>& rows = transport_registry();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [name](const TransportRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> transport_names(unsigned uses) {
  std::vector<std::string> names;
  for (const TransportRow& row : transport_registry())
    if ((row.uses & uses) == uses)
      names.push_back(row.name);
  return names;
}

std::string why_absent(const TransportRow& row) {
  return row.built ? ""
                   : "this build has no " + row.name + ": the headers of " + row.package +
                         " were missing";
}

std::string absent_fix(const TransportRow& row) {
  return "install " + row.package + " and build again";
}

std::unique_ptr<Transport> make_transport(const std::string& name, const TransportSetup& setup) {
  const TransportRow* const row = find_transport(name);
  if (!row)
    throw std::logic_error("no transport " + name);
  return row->make(setup);
}

// The transports that the option table offers (src/base/options.h).
TransportChoices transport_choices() {
  return {transport_names(0), transport_names(transport_use::remote),
          transport_names(transport_use::automatic), transport_names(transport_use::carrier)};
}

} // namespace shmemctl
