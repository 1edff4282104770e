// The bootstrap over a shared object that the user supplies.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/dynamic_library.h"
#include "src/runtime/bootstrap/blocking_calls.h"
#include "src/runtime/bootstrap/bootstrap.h"
#include "src/runtime/bootstrap/shmemctl_bootstrap_plugin.h"

namespace shmemctl {

/// A plugin is not trusted: its table and ranks are checked, and its functions are called on a
/// thread that can be abandoned, with buffers that outlive the call.
class PluginBootstrap final : public Bootstrap {
public:
  /// Loads the plugin and joins the job. Throws Error if the file or its entry point is missing,
  /// its ABI differs, functions are missing, the ranks are impossible, or the plugin reports a
  /// failure.
  PluginBootstrap(const std::string& file, const Deadline& deadline);

  const char* name() const override { return "plugin"; }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override;
  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override;
  void barrier(const Deadline& deadline) override;
  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override;
  void abort(ExitCode code, const std::string& message) noexcept override;
  void finish(const Deadline& deadline) override;

private:
  /// One call of the plugin, with all data that it touches. Shared with the thread that makes the
  /// call, so that an abandoned call does not lose the data.
  struct Call {
    std::vector<std::byte> send, receive;
    shmemctl_bootstrap table{};
    std::int32_t status = SHMEMCTL_BOOTSTRAP_ERROR;
    shmemctl_bootstrap_failure failure{};
    bool threw = false;
  };
  using Function = std::function<std::int32_t(Call& call, std::uint32_t timeout_ms)>;

  void load(const std::string& file);
  void open(const Deadline& deadline);
  void check_table(const shmemctl_bootstrap& table) const;
  void check_ranks(const Deadline& deadline);
  std::shared_ptr<Call> new_call() const;
  void run(const std::shared_ptr<Call>& call, const char* step, const Function& function,
           const Deadline& deadline);
  void judge(const Call& call, const char* step);
  [[noreturn]] void refuse(const std::string& problem) const;
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }

  std::string file_;
  shmemctl_bootstrap_open_function* entry_ = nullptr;
  shmemctl_bootstrap table_{};
  BlockingCalls blocking_; ///< the thread that makes all calls
};

} // namespace shmemctl
