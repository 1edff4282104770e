#include "src/base/print_error.h"

#include <iostream>

namespace shmemctl {

void print_error(const Error& error) {
  if (error.printed())
    return;
  std::string text = "shmemctl: error: " + error.message() + '\n';
  if (!error.fix().empty())
    text += "shmemctl: fix: " + error.fix() + '\n';
  std::cerr << text << std::flush;
}

} // namespace shmemctl
