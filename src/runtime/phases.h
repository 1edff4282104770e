// Initialisation as a list of named phases, which are timed, and undone in reverse order.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shmemctl {

struct PhaseTime {
  std::string name;
  double time_ms = 0;
};

/// Runs phases in order. When one throws, the phases entered so far are undone in reverse order and
/// the error propagates; current() still names the phase that failed.
class Phases {
public:
  using Step = std::function<void()>;
  /// Called before each phase is entered, e.g. to report it to the job.
  explicit Phases(std::function<void(const std::string&)> announce = {});
  ~Phases(); ///< undoes the phases that are still entered

  /// Runs `enter` now; `undo` (may be empty) runs in undo_all(). If `enter` throws, undoes all
  /// earlier phases and rethrows.
  void run(const std::string& name, const Step& enter, Step undo = {});
  /// Undoes all phases in reverse order. Undo steps must not throw; if one does, that is logged and
  /// the others still run.
  void undo_all() noexcept;
  /// The time of each phase that was run, in order, including one that failed.
  const std::vector<PhaseTime>& times() const { return times_; }
  /// The phase that is running, or the one that failed; otherwise "".
  const std::string& current() const { return current_; }

private:
  struct Entered {
    std::string name;
    Step undo;
  };
  std::function<void(const std::string&)> announce_;
  std::vector<Entered> entered_;
  std::vector<PhaseTime> times_;
  std::string current_;
};

/// The phases of a runtime, in order; their names are part of messages and reports.
namespace phase {
inline constexpr const char* options = "options";
inline constexpr const char* static_data = "static-data";
inline constexpr const char* bootstrap = "bootstrap";
inline constexpr const char* hosts = "hosts";
inline constexpr const char* failure_detector = "failure-detector";
inline constexpr const char* placement = "placement";
inline constexpr const char* devices = "devices";
inline constexpr const char* heap = "heap";
inline constexpr const char* transports = "transports";
inline constexpr const char* transport_map = "transport-map";
inline constexpr const char* nics = "nics";
inline constexpr const char* connections = "connections";
inline constexpr const char* gpu = "gpu"; ///< only in jobs that may use GPUs
inline constexpr const char* state = "state";
inline constexpr const char* teams = "teams";
inline constexpr const char* barrier = "barrier";
} // namespace phase

} // namespace shmemctl
