#include "src/base/secret.h"

#include <cerrno>
#include <cstddef>
#include <sys/random.h>

#include "src/base/error.h"

namespace shmemctl {

Secret random_secret() {
  Secret secret{};
  std::size_t filled = 0;
  while (filled < secret.size()) {
    const ssize_t got = ::getrandom(secret.data() + filled, secret.size() - filled, 0);
    if (got > 0)
      filled += static_cast<std::size_t>(got);
    else if (errno != EINTR)
      throw system_error("getrandom(2)", "read random bytes", errno,
                         "allow this system call in the sandbox (seccomp) of this process");
  }
  return secret;
}

bool same_secret(const Secret& left, const Secret& right) {
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    difference = difference | static_cast<unsigned>(left[i] ^ right[i]);
  return difference == 0;
}

} // namespace shmemctl
