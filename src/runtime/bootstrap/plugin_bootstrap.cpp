#include "src/runtime/bootstrap/plugin_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/chunks.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr int ranks_limit = 1 << 20;
/// Added to the deadline: a plugin that observes its timeout may need a moment to return.
constexpr std::chrono::seconds grace{1};

std::uint32_t remaining_ms(const Deadline& deadline) {
  constexpr double longest_ms = 1e9;
  return static_cast<std::uint32_t>(
      std::clamp(std::ceil(deadline.remaining_s() * 1000), 1.0, longest_ms));
}

std::string message_of(const shmemctl_bootstrap_failure& failure) {
  const char* end = std::find(std::begin(failure.message), std::end(failure.message), '\0');
  const std::string message(std::begin(failure.message), end);
  return message.empty() ? "it did not say why" : message;
}

} // namespace

PluginBootstrap::PluginBootstrap(const std::string& file, const Deadline& deadline)
    : Bootstrap(0, 1), file_(file) {
  load(file);
  open(deadline);
  check_ranks(deadline);
}

void PluginBootstrap::refuse(const std::string& problem) const {
  throw Error(ExitCode::unavailable, "bootstrap plugin " + file_, "use", problem,
              "correct the plugin; shmemctl_bootstrap_plugin.h describes the interface");
}

void PluginBootstrap::load(const std::string& file) {
  std::string why;
  const auto library = DynamicLibrary::open({file}, &why, {.stay_loaded = true});
  if (!library)
    throw Error(ExitCode::unavailable, "bootstrap plugin " + file, "load", why,
                "set SHMEMCTL_BOOTSTRAP_PLUGIN to a shared object; a name without a slash is "
                "searched for on the loader's path");
  entry_ = library->function<shmemctl_bootstrap_open_function>(SHMEMCTL_BOOTSTRAP_ENTRY);
  if (entry_ == nullptr)
    refuse("it does not export " SHMEMCTL_BOOTSTRAP_ENTRY);
}

std::shared_ptr<PluginBootstrap::Call> PluginBootstrap::new_call() const {
  auto call = std::make_shared<Call>();
  call->table = table_;
  call->failure.rank = -1;
  return call;
}

void PluginBootstrap::run(const std::shared_ptr<Call>& call, const char* step,
                          const Function& function, const Deadline& deadline) {
  const std::uint32_t timeout_ms = remaining_ms(deadline);
  blocking_.run(
      step,
      [call, function, timeout_ms] {
        try {
          call->status = function(*call, timeout_ms);
        } catch (...) { // a C++ plugin that breaks the rule not to throw
          call->threw = true;
        }
      },
      Deadline(deadline.at() + grace), health());
  judge(*call, step);
}

void PluginBootstrap::judge(const Call& call, const char* step) {
  if (call.threw)
    refuse(std::string("its ") + step + " threw an exception");
  if (call.status == SHMEMCTL_BOOTSTRAP_OK)
    return;
  const int culprit = call.failure.rank < size() ? std::max(-1, call.failure.rank) : -1;
  const std::string whom = culprit < 0 ? "a PE" : "PE " + std::to_string(culprit);
  const std::string message = message_of(call.failure);
  if (call.status == SHMEMCTL_BOOTSTRAP_TIMEOUT) {
    log(LogLevel::info, "bootstrap", std::string("plugin: ") + step + ": " + printable(message));
    health().waiting_for(culprit);
    health().give_up(step, culprit);
  } else if (call.status == SHMEMCTL_BOOTSTRAP_LOST) {
    health().await_cause(culprit);
    throw Error(ExitCode::unavailable, "bootstrap plugin " + file_, std::string("complete ") + step,
                "lost " + whom + ": " + message,
                "check the output of " + (culprit < 0 ? "the other PEs" : whom));
  } else if (call.status == SHMEMCTL_BOOTSTRAP_ERROR) {
    throw Error(ExitCode::unavailable, "bootstrap plugin " + file_, std::string("complete ") + step,
                message, "check the documentation and the output of the plugin");
  }
  refuse(std::string("its ") + step + " returned " + std::to_string(call.status) +
         ", which is not a status of the interface");
}

void PluginBootstrap::open(const Deadline& deadline) {
  const auto call = new_call();
  call->table.struct_size = sizeof(shmemctl_bootstrap);
  run(
      call, "shmemctl_bootstrap_open",
      [entry = entry_](Call& plugin_call, std::uint32_t timeout_ms) {
        return entry(SHMEMCTL_BOOTSTRAP_ABI, &plugin_call.table, timeout_ms, &plugin_call.failure);
      },
      deadline);
  check_table(call->table);
  table_ = call->table;
  set_ranks(table_.rank, table_.size);
}

void PluginBootstrap::check_table(const shmemctl_bootstrap& table) const {
  if (table.abi_version != SHMEMCTL_BOOTSTRAP_ABI)
    throw Error(ExitCode::unavailable, "bootstrap plugin " + file_, "use",
                "compiled for ABI " + std::to_string(table.abi_version) + " instead of " +
                    std::to_string(SHMEMCTL_BOOTSTRAP_ABI),
                "compile the plugin with the shmemctl_bootstrap_plugin.h of this release");
  const std::pair<const char*, bool> members[] = {
      {"allgather", table.allgather != nullptr}, {"alltoall", table.alltoall != nullptr},
      {"barrier", table.barrier != nullptr},     {"broadcast", table.broadcast != nullptr},
      {"abort_job", table.abort_job != nullptr}, {"finish", table.finish != nullptr},
  };
  std::vector<std::string> missing;
  for (const auto& [member, there] : members)
    if (!there)
      missing.push_back(member);
  if (!missing.empty())
    refuse("it left these functions NULL: " + join(missing, ", "));
  if (table.size < 1 || table.size > ranks_limit || table.rank < 0 || table.rank >= table.size)
    refuse("it reports rank " + std::to_string(table.rank) + " of " + std::to_string(table.size));
}

/// Checks that every rank exists exactly once, and that all have the same size.
void PluginBootstrap::check_ranks(const Deadline& deadline) {
  struct Place {
    std::int32_t rank, size;
  };
  const auto places = allgather_value(*this, Place{rank(), size()}, deadline);
  for (int expected = 0; expected < size(); ++expected) {
    const Place& place = places[static_cast<std::size_t>(expected)];
    if (place.rank != expected || place.size != size())
      refuse("its ranks contradict each other: block " + std::to_string(expected) + " of " +
             std::to_string(size()) + " of an allgather came from rank " +
             std::to_string(place.rank) + " of " + std::to_string(place.size));
  }
}

void PluginBootstrap::allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                                const Deadline& deadline) {
  const auto call = new_call();
  call->send.resize(bytes_per_rank);
  call->receive.resize(bytes_per_rank * ranks());
  copy_bytes(call->send.data(), send, bytes_per_rank);
  run(
      call, "allgather",
      [bytes_per_rank](Call& plugin_call, std::uint32_t timeout_ms) {
        return plugin_call.table.allgather(plugin_call.table.context, plugin_call.send.data(),
                                           plugin_call.receive.data(), bytes_per_rank, timeout_ms,
                                           &plugin_call.failure);
      },
      deadline);
  copy_bytes(receive, call->receive.data(), call->receive.size());
}

void PluginBootstrap::alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                               const Deadline& deadline) {
  const auto call = new_call();
  call->send.resize(bytes_per_rank * ranks());
  call->receive.resize(bytes_per_rank * ranks());
  copy_bytes(call->send.data(), send, call->send.size());
  run(
      call, "alltoall",
      [bytes_per_rank](Call& plugin_call, std::uint32_t timeout_ms) {
        return plugin_call.table.alltoall(plugin_call.table.context, plugin_call.send.data(),
                                          plugin_call.receive.data(), bytes_per_rank, timeout_ms,
                                          &plugin_call.failure);
      },
      deadline);
  copy_bytes(receive, call->receive.data(), call->receive.size());
}

void PluginBootstrap::barrier(const Deadline& deadline) {
  run(
      new_call(), "barrier",
      [](Call& plugin_call, std::uint32_t timeout_ms) {
        return plugin_call.table.barrier(plugin_call.table.context, timeout_ms,
                                         &plugin_call.failure);
      },
      deadline);
}

void PluginBootstrap::broadcast(void* data, std::size_t size_bytes, int root,
                                const Deadline& deadline) {
  const auto call = new_call();
  call->receive.resize(size_bytes);
  if (rank() == root)
    copy_bytes(call->receive.data(), data, size_bytes);
  run(
      call, "broadcast",
      [size_bytes, root](Call& plugin_call, std::uint32_t timeout_ms) {
        return plugin_call.table.broadcast(plugin_call.table.context, plugin_call.receive.data(),
                                           size_bytes, root, timeout_ms, &plugin_call.failure);
      },
      deadline);
  copy_bytes(data, call->receive.data(), size_bytes);
}

void PluginBootstrap::abort(ExitCode code, const std::string& message) noexcept {
  if (blocking_.abandoned() || table_.abort_job == nullptr)
    return;
  try {
    blocking_.run(
        "abort",
        [table = table_, code, message] {
          table.abort_job(table.context, static_cast<int>(code), message.c_str());
        },
        Deadline::after(grace), health());
  } catch (...) {
    return; // the plugin could not be asked; the caller ends this process
  }
}

void PluginBootstrap::finish(const Deadline& deadline) {
  run(
      new_call(), "finish",
      [](Call& plugin_call, std::uint32_t timeout_ms) {
        return plugin_call.table.finish(plugin_call.table.context, timeout_ms,
                                        &plugin_call.failure);
      },
      deadline);
}

std::unique_ptr<Bootstrap> open_plugin(BootstrapRequest& request, const Deadline& deadline) {
  const std::string file = request.options->text("BOOTSTRAP_PLUGIN");
  if (file.empty())
    throw Error(ExitCode::usage, "SHMEMCTL_BOOTSTRAP=plugin", "", "no plugin given",
                "set SHMEMCTL_BOOTSTRAP_PLUGIN to the plugin's file");
  return std::make_unique<PluginBootstrap>(file, deadline);
}

} // namespace shmemctl
