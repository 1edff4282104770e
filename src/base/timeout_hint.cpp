#include "src/base/timeout_hint.h"

#include <atomic>

namespace shmemctl {

namespace {

std::atomic<bool> is_option{false};

} // namespace

void timeout_is_an_option() {
  is_option = true;
}

std::string raise_timeout() {
  return is_option ? "raise --timeout" : "raise SHMEMCTL_TIMEOUT";
}

} // namespace shmemctl
