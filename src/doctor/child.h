// Asks a question in a child process with a deadline: for calls into drivers that may hang or
// crash.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace shmemctl::doctor {

struct ChildAnswer {
  std::string text;    ///< what the child answered, at most 1 MiB
  std::string problem; ///< why there is no whole answer; "" if there is
};

/// Forks, runs `answer` in the child and returns its text. A child that does not answer in time is
/// killed; one that dies of a signal is a problem, named by `call`. Never throws.
ChildAnswer ask_child(const std::function<std::string()>& answer, const std::string& call,
                      std::chrono::milliseconds deadline);

} // namespace shmemctl::doctor
