// An environment variable that is back to what it was after the test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace shmemctl::test {

class SetVariable {
public:
  SetVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str()))
      before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;
  ~SetVariable() {
    if (before_)
      ::setenv(name_.c_str(), before_->c_str(), 1);
    else
      ::unsetenv(name_.c_str());
  }

private:
  std::string name_;
  std::optional<std::string> before_;
};

} // namespace shmemctl::test
