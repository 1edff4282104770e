#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <cstdlib>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/open_files.h"
#include "src/base/process.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "transports/ucx/context.h"

namespace shmemctl {

namespace {

/// The version of UCX's API that introduced the newest function used here.
constexpr unsigned api_major = 1, api_minor = 11;

/// Numbers of open files. A context has pipes, an event queue and a timer of UCX's thread, and
/// descriptors for querying devices. A worker has an event queue and an event, and for each of its
/// transports on a device a socket or a file, an event channel, and temporarily another socket.
constexpr std::size_t files_of_context = 12, files_of_worker = 4, files_of_resource = 3;

constexpr const char* second_protocols = "PROTO_ENABLE";

/// A setting whose default in UCX does not suit one-sided operations with deadlines. Settings of
/// UCX's transports are set without the prefix of their variables.
struct Preference {
  const char* name;
  const char* variable; ///< the user's variable, which has priority; nullptr: always applied
  const char* value;
};
constexpr Preference preferences[] = {
    // UCX's strong fence waits without a deadline, so UcxTransport flushes instead.
    {"FENCE_MODE", nullptr, "weak"},
    // With relaxed ordering on PCIe, writes could overtake writes before a fence.
    {"PCI_RELAXED_ORDERING", "UCX_IB_PCI_RELAXED_ORDERING", "n"},
    // The keepalive is for transports that do not detect a peer's end by themselves.
    {"KEEPALIVE_INTERVAL", "UCX_KEEPALIVE_INTERVAL", "5s"},
    // UCX has a second set of protocols, the default since 1.16. It has no atomics for endpoints
    // with error handling, and searches for them endlessly.
    {second_protocols, "UCX_PROTO_ENABLE", "n"},
    // Connect without blocking, since a host may not respond.
    {"CONN_NB", "UCX_TCP_CONN_NB", "y"},
};

class Config {
public:
  explicit Config(const UcxApi& api) : api_(api) {
    const ucs_status_t status = api_.config_read(nullptr, nullptr, &config_);
    if (status != UCS_OK)
      throw Error(ExitCode::unavailable, "UCX", "read its settings", reason(status),
                  "correct the UCX_* variables");
  }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  ~Config() { api_.config_release(config_); }

  ucp_config_t* get() const { return config_; }
  ucs_status_t set(const std::string& name, const std::string& value) {
    return api_.config_modify(config_, name.c_str(), value.c_str());
  }
  void set_or_throw(const std::string& name, const std::string& value) {
    const ucs_status_t status = set(name, value);
    if (status != UCS_OK)
      throw Error(ExitCode::unavailable, "UCX", "set UCX_" + name + "=" + value, reason(status),
                  "check the values that ucx_info -cf lists");
  }

private:
  std::string reason(ucs_status_t status) const {
    const std::string logged = UcxLog::take_error();
    return api_.status_text(status) + (logged.empty() ? "" : " (" + logged + ")");
  }

  const UcxApi& api_;
  ucp_config_t* config_ = nullptr;
};

bool is_set(const char* variable) {
  return variable && std::getenv(variable) != nullptr;
}

bool is_off(const char* variable) {
  const char* value = std::getenv(variable);
  const std::string text = value ? lower(value) : "";
  return text == "n" || text == "no" || text == "off" || text == "0";
}

} // namespace

std::string ucx_fix(ucs_status_t status) {
  switch (status) {
  case UCS_ERR_NO_MEMORY:
  case UCS_ERR_EXCEEDS_LIMIT:
    return "raise the locked memory limit (ulimit -l unlimited), or lower SHMEMCTL_SYMMETRIC_SIZE";
  case UCS_ERR_NO_DEVICE:
  case UCS_ERR_UNREACHABLE:
    return "run ucx_info -d to list the devices, and check UCX_TLS and UCX_NET_DEVICES";
  default:
    return "set UCX_LOG_LEVEL=info to see why, and check the output of the other PEs";
  }
}

UcxContext::UcxContext(std::shared_ptr<const UcxApi> api, const UcxSettings& settings, int n_pes,
                       const std::string& devices)
    : api_(std::move(api)), log_(api_) {
  const SignalDispositions keep;
  UcxLog::take_error();
  Config config(*api_);
  for (const Preference& preference : preferences) {
    // Ignores a setting that this version of UCX does not have.
    const bool done =
        !is_set(preference.variable) && config.set(preference.name, preference.value) == UCS_OK;
    if (preference.name == std::string_view(second_protocols))
      may_handle_errors_ = done || is_off(preference.variable);
  }
  if (!devices.empty() && !is_set("UCX_NET_DEVICES"))
    config.set_or_throw("NET_DEVICES", devices);
  for (const auto& [name, value] : settings) {
    config.set_or_throw(name, value);
    if (name == second_protocols)
      may_handle_errors_ = value == "n";
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  params.estimated_num_eps = static_cast<std::size_t>(n_pes);
  ucs_status_t status = UCS_OK;
  {
    const SignalsBlocked blocked(SignalsBlocked::But::faults); // UCX starts a thread here
    status = api_->init_version(api_major, api_minor, &params, config.get(), &context_);
  }
  if (status != UCS_OK) {
    const std::string logged = UcxLog::take_error();
    throw Error(ExitCode::unavailable, "UCX " + api_->version, "initialize",
                api_->status_text(status) + (logged.empty() ? "" : " (" + logged + ")"),
                ucx_fix(status));
  }
}

UcxContext::~UcxContext() {
  api_->cleanup(context_);
}

std::size_t UcxContext::request_bytes() const {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
  const ucs_status_t status = api_->context_query(context_, &attributes);
  if (status != UCS_OK)
    throw Error(ExitCode::unavailable, "UCX " + api_->version, "query the size of a request",
                api_->status_text(status), ucx_fix(status));
  return attributes.request_size;
}

void UcxContext::require_files() {
  require_descriptors(files_of_context, "UCX", "open");
}

void UcxContext::require_files_of_worker() const {
  require_descriptors(files_of_worker + files_of_resource * resources().size(), "UCX", "open");
}

std::vector<UcxLane> UcxContext::resources() const {
  return parse_resources(
      print_to_text([this](FILE* file) { api_->context_print_info(context_, file); }));
}

bool UcxContext::has_shared_memory() const {
  std::vector<UcxLane> lanes = resources();
  std::erase_if(lanes, [](const UcxLane& lane) { return lane.transport == "self"; });
  return some_memory(lanes);
}

UcxMapping::UcxMapping(std::shared_ptr<const UcxContext> context, void* base,
                       std::size_t size_bytes)
    : context_(std::move(context)) {
  UcxLog::take_error();
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = base;
  params.length = size_bytes;
  const UcxApi& api = context_->api();
  const ucs_status_t status = api.mem_map(context_->get(), &params, &memory_);
  if (status != UCS_OK) {
    const std::string logged = UcxLog::take_error();
    throw Error(ExitCode::unavailable, "UCX", "register " + format_size_bytes(size_bytes),
                api.status_text(status) + (logged.empty() ? "" : " (" + logged + ")"),
                ucx_fix(UCS_ERR_NO_MEMORY));
  }
}

UcxMapping::~UcxMapping() {
  context_->api().mem_unmap(context_->get(), memory_);
}

std::string UcxMapping::packed_key() const {
  const UcxApi& api = context_->api();
  void* buffer = nullptr;
  std::size_t size_bytes = 0;
  const ucs_status_t status = api.rkey_pack(context_->get(), memory_, &buffer, &size_bytes);
  if (status != UCS_OK)
    throw Error(ExitCode::unavailable, "UCX", "pack the key of registered memory",
                api.status_text(status), ucx_fix(status));
  std::string key(static_cast<const char*>(buffer), size_bytes);
  api.rkey_buffer_release(buffer);
  return key;
}

} // namespace shmemctl

#endif
