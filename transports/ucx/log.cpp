#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "src/base/error.h"
#include "transports/ucx/api.h"

namespace shmemctl {

namespace {

constexpr int hook_is_last = 0, other_hooks_follow = 1; // what UCX's hooks return
constexpr int error_level = 1;                          // 0 is fatal, 2 warning

/// Global, since UCX does not pass an object to its hooks.
struct LastError {
  std::mutex mutex;
  std::string text;
  int users = 0;
};

LastError& last_error() {
  static LastError last;
  return last;
}

int on_message(const char*, unsigned, const char*, int level, const void*, const char* format,
               std::va_list arguments) {
  if (std::getenv("UCX_LOG_FILE") != nullptr)
    return other_hooks_follow;
  char text[512];
  std::va_list again;
  va_copy(again, arguments);
  std::vsnprintf(text, sizeof text, format, again);
  va_end(again);
  if (std::getenv("UCX_LOG_LEVEL") != nullptr)
    std::fprintf(stderr, "shmemctl: ucx: %s\n", printable(text, sizeof text).c_str());
  if (level <= error_level) {
    LastError& last = last_error();
    const std::lock_guard lock(last.mutex);
    last.text = printable(text, sizeof text);
  }
  return hook_is_last;
}

} // namespace

UcxLog::UcxLog(std::shared_ptr<const UcxApi> api) : api_(std::move(api)) {
  LastError& last = last_error();
  const std::lock_guard lock(last.mutex);
  if (last.users++ == 0 && api_->push_log_hook && api_->pop_log_hook)
    api_->push_log_hook(on_message);
}

UcxLog::~UcxLog() {
  LastError& last = last_error();
  const std::lock_guard lock(last.mutex);
  if (--last.users == 0 && api_->push_log_hook && api_->pop_log_hook)
    api_->pop_log_hook();
}

std::string UcxLog::take_error() {
  LastError& last = last_error();
  const std::lock_guard lock(last.mutex);
  return std::exchange(last.text, {});
}

} // namespace shmemctl

#endif
