// libucp, opened at run time: a table of its functions, and its log.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include <ucp/api/ucp.h>

#include "src/base/dynamic_library.h"

namespace shmemctl {

/// The functions of libucp, named without "ucp_". UCX has all of them since version 1.11.
struct UcxApi {
  explicit UcxApi(DynamicLibrary opened) : library(std::move(opened)) {}

  DynamicLibrary library;
  std::string version; ///< "1.13.1"

  decltype(&::ucp_get_version) get_version = nullptr;
  decltype(&::ucp_init_version) init_version = nullptr;
  decltype(&::ucp_cleanup) cleanup = nullptr;
  decltype(&::ucp_context_query) context_query = nullptr;
  decltype(&::ucp_context_print_info) context_print_info = nullptr;
  decltype(&::ucp_config_read) config_read = nullptr;
  decltype(&::ucp_config_modify) config_modify = nullptr;
  decltype(&::ucp_config_release) config_release = nullptr;
  decltype(&::ucp_worker_create) worker_create = nullptr;
  decltype(&::ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&::ucp_worker_query) worker_query = nullptr;
  decltype(&::ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&::ucp_worker_progress) worker_progress = nullptr;
  decltype(&::ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&::ucp_worker_arm) worker_arm = nullptr;
  decltype(&::ucp_worker_fence) worker_fence = nullptr;
  decltype(&::ucp_worker_print_info) worker_print_info = nullptr;
  decltype(&::ucp_ep_create) ep_create = nullptr;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&::ucp_ep_flush_nbx) ep_flush_nbx = nullptr;
  decltype(&::ucp_ep_print_info) ep_print_info = nullptr;
  decltype(&::ucp_ep_rkey_unpack) ep_rkey_unpack = nullptr;
  decltype(&::ucp_rkey_destroy) rkey_destroy = nullptr;
  decltype(&::ucp_rkey_pack) rkey_pack = nullptr;
  decltype(&::ucp_rkey_buffer_release) rkey_buffer_release = nullptr;
  decltype(&::ucp_mem_map) mem_map = nullptr;
  decltype(&::ucp_mem_unmap) mem_unmap = nullptr;
  decltype(&::ucp_put_nbx) put_nbx = nullptr;
  decltype(&::ucp_get_nbx) get_nbx = nullptr;
  decltype(&::ucp_atomic_op_nbx) atomic_op_nbx = nullptr;
  decltype(&::ucp_request_check_status) request_check_status = nullptr;
  decltype(&::ucp_request_free) request_free = nullptr;

  /// UCX's text for a status, or its number if the library has no function for that.
  std::string status_text(ucs_status_t status) const;

  // Hooks of UCX's log in libucs. No public header declares them, and some builds lack them.
  using LogHook = int(const char* file, unsigned line, const char* function, int level,
                      const void* component, const char* format, std::va_list arguments);
  void (*push_log_hook)(LogHook*) = nullptr;
  void (*pop_log_hook)() = nullptr;
  const char* (*status_string)(ucs_status_t) = nullptr;
};

/// Returns nullptr if the library is missing or too old; `why` then receives the reason, with the
/// package to install.
std::shared_ptr<const UcxApi> open_ucx(const std::string& file, std::string& why);

/// The text that `print` writes to a file.
std::string print_to_text(const std::function<void(FILE*)>& print);

/// While an object of this class exists, UCX writes no log to stdout or stderr. Exceptions: if the
/// user has set UCX_LOG_LEVEL, the log goes to stderr, and with UCX_LOG_FILE, UCX writes to that
/// file. Thread safe; several objects may exist.
class UcxLog {
public:
  explicit UcxLog(std::shared_ptr<const UcxApi> api);
  UcxLog(const UcxLog&) = delete;
  UcxLog& operator=(const UcxLog&) = delete;
  ~UcxLog();

  /// Returns the last error that UCX logged in this process, and clears it; "" if there was none.
  static std::string take_error();

private:
  std::shared_ptr<const UcxApi> api_;
};

} // namespace shmemctl
