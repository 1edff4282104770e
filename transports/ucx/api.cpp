#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <cstdlib>

#include "src/base/process.h"
#include "transports/ucx/api.h"

namespace shmemctl {

namespace {

constexpr const char* package = "install the package libucx0 (Debian, Ubuntu) or ucx (RHEL), or "
                                "name the file with SHMEMCTL_UCX_LIBRARY";

void load_all(SymbolLookup& lookup, UcxApi& api) {
  lookup.require(api.library, api.get_version, "ucp_get_version");
  lookup.require(api.library, api.init_version, "ucp_init_version");
  lookup.require(api.library, api.cleanup, "ucp_cleanup");
  lookup.require(api.library, api.context_query, "ucp_context_query");
  lookup.require(api.library, api.context_print_info, "ucp_context_print_info");
  lookup.require(api.library, api.config_read, "ucp_config_read");
  lookup.require(api.library, api.config_modify, "ucp_config_modify");
  lookup.require(api.library, api.config_release, "ucp_config_release");
  lookup.require(api.library, api.worker_create, "ucp_worker_create");
  lookup.require(api.library, api.worker_destroy, "ucp_worker_destroy");
  lookup.require(api.library, api.worker_query, "ucp_worker_query");
  lookup.require(api.library, api.worker_release_address, "ucp_worker_release_address");
  lookup.require(api.library, api.worker_progress, "ucp_worker_progress");
  lookup.require(api.library, api.worker_get_efd, "ucp_worker_get_efd");
  lookup.require(api.library, api.worker_arm, "ucp_worker_arm");
  lookup.require(api.library, api.worker_fence, "ucp_worker_fence");
  lookup.require(api.library, api.worker_print_info, "ucp_worker_print_info");
  lookup.require(api.library, api.ep_create, "ucp_ep_create");
  lookup.require(api.library, api.ep_close_nbx, "ucp_ep_close_nbx");
  lookup.require(api.library, api.ep_flush_nbx, "ucp_ep_flush_nbx");
  lookup.require(api.library, api.ep_print_info, "ucp_ep_print_info");
  lookup.require(api.library, api.ep_rkey_unpack, "ucp_ep_rkey_unpack");
  lookup.require(api.library, api.rkey_destroy, "ucp_rkey_destroy");
  lookup.require(api.library, api.rkey_pack, "ucp_rkey_pack");
  lookup.require(api.library, api.rkey_buffer_release, "ucp_rkey_buffer_release");
  lookup.require(api.library, api.mem_map, "ucp_mem_map");
  lookup.require(api.library, api.mem_unmap, "ucp_mem_unmap");
  lookup.require(api.library, api.put_nbx, "ucp_put_nbx");
  lookup.require(api.library, api.get_nbx, "ucp_get_nbx");
  lookup.require(api.library, api.atomic_op_nbx, "ucp_atomic_op_nbx");
  lookup.require(api.library, api.request_check_status, "ucp_request_check_status");
  lookup.require(api.library, api.request_free, "ucp_request_free");
}

} // namespace

std::string UcxApi::status_text(ucs_status_t status) const {
  return status_string ? status_string(status) : "UCX status " + std::to_string(status);
}

std::shared_ptr<const UcxApi> open_ucx(const std::string& file, std::string& why) {
  // UCX installs signal handlers that print stack traces; restore the previous ones.
  const SignalDispositions keep;
  DynamicLibrary::Needs needs;
  needs.stay_loaded = true; // UCX has threads, and patches the C library's memory functions
  std::optional<DynamicLibrary> library = DynamicLibrary::open({file}, &why, needs);
  if (!library) {
    why += std::string("; ") + package;
    return nullptr;
  }
  const auto api = std::make_shared<UcxApi>(std::move(*library));
  SymbolLookup lookup;
  load_all(lookup, *api);
  if (!lookup.missing().empty()) {
    why = lookup.missing() + ": it is older than UCX 1.11, or something else; " + package;
    return nullptr;
  }
  unsigned major = 0, minor = 0, release = 0;
  api->get_version(&major, &minor, &release);
  api->version =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  // Functions of libucs, which libucp loads.
  api->status_string = api->library.function<const char*(ucs_status_t)>("ucs_status_string");
  api->push_log_hook = api->library.function<void(UcxApi::LogHook*)>("ucs_log_push_handler");
  api->pop_log_hook = api->library.function<void()>("ucs_log_pop_handler");
  return api;
}

std::string print_to_text(const std::function<void(FILE*)>& print) {
  char* text = nullptr;
  std::size_t size_bytes = 0;
  FILE* file = ::open_memstream(&text, &size_bytes);
  if (!file)
    return {};
  print(file);
  std::fclose(file);
  const std::unique_ptr<char, void (*)(void*)> owned(text, std::free);
  return {text, size_bytes};
}

} // namespace shmemctl

#endif
