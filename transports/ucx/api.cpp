#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <cstdlib>

#include "src/base/process.h"
#include "transports/ucx/api.h"

namespace shmemctl {

namespace {

constexpr const char* package = "install the package libucx0 (Debian, Ubuntu) or ucx (RHEL), or "
                                "name the file with SHMEMCTL_UCX_LIBRARY";

/// The first function that the library lacks.
class Loader {
public:
  explicit Loader(const DynamicLibrary& library) : library_(library) {}
  template <class Function>
  void load(Function*& function, const char* symbol) {
    function = library_.function<Function>(symbol);
    if (function == nullptr && missing_.empty())
      missing_ = symbol;
  }
  const std::string& missing() const { return missing_; }

private:
  const DynamicLibrary& library_;
  std::string missing_;
};

void load_all(Loader& loader, UcxApi& api) {
  loader.load(api.get_version, "ucp_get_version");
  loader.load(api.init_version, "ucp_init_version");
  loader.load(api.cleanup, "ucp_cleanup");
  loader.load(api.context_query, "ucp_context_query");
  loader.load(api.context_print_info, "ucp_context_print_info");
  loader.load(api.config_read, "ucp_config_read");
  loader.load(api.config_modify, "ucp_config_modify");
  loader.load(api.config_release, "ucp_config_release");
  loader.load(api.worker_create, "ucp_worker_create");
  loader.load(api.worker_destroy, "ucp_worker_destroy");
  loader.load(api.worker_query, "ucp_worker_query");
  loader.load(api.worker_release_address, "ucp_worker_release_address");
  loader.load(api.worker_progress, "ucp_worker_progress");
  loader.load(api.worker_get_efd, "ucp_worker_get_efd");
  loader.load(api.worker_arm, "ucp_worker_arm");
  loader.load(api.worker_fence, "ucp_worker_fence");
  loader.load(api.worker_print_info, "ucp_worker_print_info");
  loader.load(api.ep_create, "ucp_ep_create");
  loader.load(api.ep_close_nbx, "ucp_ep_close_nbx");
  loader.load(api.ep_flush_nbx, "ucp_ep_flush_nbx");
  loader.load(api.ep_print_info, "ucp_ep_print_info");
  loader.load(api.ep_rkey_unpack, "ucp_ep_rkey_unpack");
  loader.load(api.rkey_destroy, "ucp_rkey_destroy");
  loader.load(api.rkey_pack, "ucp_rkey_pack");
  loader.load(api.rkey_buffer_release, "ucp_rkey_buffer_release");
  loader.load(api.mem_map, "ucp_mem_map");
  loader.load(api.mem_unmap, "ucp_mem_unmap");
  loader.load(api.put_nbx, "ucp_put_nbx");
  loader.load(api.get_nbx, "ucp_get_nbx");
  loader.load(api.atomic_op_nbx, "ucp_atomic_op_nbx");
  loader.load(api.request_check_status, "ucp_request_check_status");
  loader.load(api.request_free, "ucp_request_free");
}

} // namespace

std::string UcxApi::status_text(ucs_status_t status) const {
  return status_string ? status_string(status) : "UCX status " + std::to_string(status);
}

std::shared_ptr<const UcxApi> open_ucx(const std::string& file, std::string& why) {
  // UCX installs handlers that print stack traces.
  const SignalDispositions keep;
  DynamicLibrary::Needs needs;
  needs.stay_loaded = true; // it has threads, and patches the C library's memory functions
  std::optional<DynamicLibrary> library = DynamicLibrary::open({file}, &why, needs);
  if (!library) {
    why += std::string("; ") + package;
    return nullptr;
  }
  const auto api = std::make_shared<UcxApi>(std::move(*library));
  Loader loader(api->library);
  load_all(loader, *api);
  if (!loader.missing().empty()) {
    why = api->library.file() + " has no " + loader.missing() +
          ": it is older than UCX 1.11, or something else; " + package;
    return nullptr;
  }
  unsigned major = 0, minor = 0, release = 0;
  api->get_version(&major, &minor, &release);
  api->version =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  // These are libucs's, which came with libucp.
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
