#include "src/runtime/phases.h"

#include <chrono>
#include <exception>

#include "src/base/log.h"

namespace shmemctl {

namespace {

using Clock = std::chrono::steady_clock;

/// Records the time of a phase, whether it succeeds or throws.
class Stopwatch {
public:
  Stopwatch(std::vector<PhaseTime>& times, std::string name)
      : times_(times), name_(std::move(name)) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start_;
    times_.push_back({std::move(name_), elapsed.count()});
  }

private:
  std::vector<PhaseTime>& times_;
  std::string name_;
  Clock::time_point start_ = Clock::now();
};

void undo(const std::string& name, const Phases::Step& step) noexcept {
  try {
    if (step)
      step();
  } catch (const std::exception& error) {
    log(LogLevel::warning, "runtime", "cannot undo phase " + name + ": " + error.what());
  } catch (...) {
    log(LogLevel::warning, "runtime", "cannot undo phase " + name + ": unknown error");
  }
}

} // namespace

Phases::Phases(std::function<void(const std::string&)> announce) : announce_(std::move(announce)) {}

Phases::~Phases() {
  undo_all();
}

void Phases::run(const std::string& name, const Step& enter, Step undo) {
  current_ = name;
  // Reserved first: once a phase is entered, storing its undo step must not fail.
  entered_.reserve(entered_.size() + 1);
  times_.reserve(times_.size() + 1);
  Entered entered{name, std::move(undo)};
  try {
    const Stopwatch stopwatch(times_, name);
    if (announce_)
      announce_(name);
    if (enter)
      enter();
  } catch (...) {
    undo_all();
    throw;
  }
  entered_.push_back(std::move(entered));
  current_.clear();
}

void Phases::undo_all() noexcept {
  while (!entered_.empty()) {
    const Entered last = std::move(entered_.back());
    entered_.pop_back();
    undo(last.name, last.undo);
  }
}

} // namespace shmemctl
