// PMI-2.
#include <algorithm>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/bootstrap/pmi_connection.h"
#include "src/bootstrap/pmi_space.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_key_length = 63;
/// PMI-2's limit is 1024 with the terminating zero; Slurm refuses more.
constexpr std::size_t max_value_length = 1023;

class Pmi2Space final : public KeyValueSpace {
public:
  Pmi2Space(FileDescriptor descriptor, const PmiIdentity& identity)
      : connection_(std::move(descriptor)), identity_(identity) {}

  const char* name() const override { return "pmi2"; }
  int rank() const override { return identity_.rank; }
  int size() const override { return identity_.size; }
  std::size_t max_key_bytes() const override { return max_key_length; }
  std::size_t max_value_bytes() const override { return max_value_length; }
  bool binary_values() const override { return false; }
  /// Hydra answers at once and lets kvs-get wait.
  bool fence_synchronizes() const override { return false; }

  void start(const Deadline& deadline);
  /// Says in the log what the launcher tells about nodes.
  void log_mapping(const Deadline& deadline);

  void put(const std::string& key, const std::string& value, const Deadline& deadline) override {
    ask(PmiMessage("kvs-put").add("key", key).add("value", value), deadline);
  }
  void fence(const Deadline& deadline) override { ask(PmiMessage("kvs-fence"), deadline); }
  std::optional<std::string> get(int rank, const std::string& key,
                                 const Deadline& deadline) override;
  void abort(ExitCode code, const std::string& message) noexcept override;
  void finish(const Deadline& deadline) override {
    ask(PmiMessage("finalize"), deadline);
    connection_.close();
  }
  void leave(const Deadline& deadline) noexcept override;

private:
  /// The answer of a request that was not refused.
  PmiMessage ask(const PmiMessage& request, const Deadline& deadline, int peer = -1);
  static std::optional<std::string> found_value(const PmiMessage& answer);

  PmiConnection connection_;
  PmiIdentity identity_;
};

PmiMessage Pmi2Space::ask(const PmiMessage& request, const Deadline& deadline, int peer) {
  const std::string step = "PMI-2 " + request.command();
  PmiMessage answer = connection_.ask_block(request, {deadline, health(), step, peer});
  PmiConnection::require_success(answer, step);
  return answer;
}

void Pmi2Space::start(const Deadline& deadline) {
  const PmiMessage init =
      connection_.ask_line(PmiMessage("init").add("pmi_version", "2").add("pmi_subversion", "0"),
                           "response_to_init", {deadline, health(), "PMI-2 init"});
  PmiConnection::require_success(init, "PMI-2 init");
  if (const long long version = init.integer("pmi_version").value_or(2); version != 2)
    throw Error(ExitCode::unavailable, "process manager", "complete PMI-2 init",
                "it speaks version " + std::to_string(version) + " of PMI",
                "set SHMEMCTL_BOOTSTRAP=pmi to use PMI-1");
  const PmiMessage answer = ask(PmiMessage("fullinit")
                                    .add("pmijobid", identity_.job_id)
                                    .add("pmirank", std::to_string(identity_.rank))
                                    .add("threaded", "FALSE"),
                                deadline);
  const auto rank = answer.integer("rank"), size = answer.integer("size");
  if (rank != identity_.rank || size != identity_.size)
    throw Error(ExitCode::unavailable, "process manager", "complete PMI-2 fullinit",
                "it reports rank " + printable(answer.find("rank").value_or("?"), 20) + " of " +
                    printable(answer.find("size").value_or("?"), 20) +
                    ", but PMI_RANK and PMI_SIZE are " + std::to_string(identity_.rank) + " and " +
                    std::to_string(identity_.size),
                "let the launcher set PMI_RANK and PMI_SIZE");
}

std::optional<std::string> Pmi2Space::found_value(const PmiMessage& answer) {
  for (const char* name : {"found", "flag"}) // the specification's word, and Slurm's
    if (const auto found = answer.find(name); found && *found != "TRUE")
      return std::nullopt;
  return answer.find("value");
}

void Pmi2Space::log_mapping(const Deadline& deadline) {
  if (!log_enabled(LogLevel::debug, "bootstrap"))
    return;
  const PmiMessage answer =
      ask(PmiMessage("info-getjobattr").add("key", "PMI_process_mapping"), deadline);
  log(LogLevel::debug, "bootstrap",
      "PMI_process_mapping: " + printable(found_value(answer).value_or("unknown")));
}

std::optional<std::string> Pmi2Space::get(int rank, const std::string& key,
                                          const Deadline& deadline) {
  return found_value(ask(PmiMessage("kvs-get")
                             .add("jobid", identity_.job_id)
                             .add("srcid", std::to_string(rank))
                             .add("key", key),
                         deadline, rank));
}

void Pmi2Space::abort(ExitCode, const std::string& message) noexcept {
  try {
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));
    JobHealth nobody; // the job is failing already
    // Slurm does not know that two semicolons are one in a value, and reads names behind them.
    std::string words = printable(message);
    std::replace(words.begin(), words.end(), ';', ',');
    const PmiMessage request = PmiMessage("abort").add("isworld", "TRUE").add("msg", words);
    connection_.send(format_pmi2(request), {deadline, nobody, "PMI-2 abort"});
  } catch (const std::exception&) {
    connection_.close(); // it cannot be asked; leaving without a word ends the job too
  }
}

void Pmi2Space::leave(const Deadline& deadline) noexcept {
  try {
    JobHealth nobody; // the job is ending already
    connection_.ask_block(PmiMessage("finalize"), {deadline, nobody, "PMI-2 finalize"});
  } catch (const std::exception& failure) {
    log(LogLevel::debug, "bootstrap", failure.what());
  }
  connection_.close();
}

} // namespace

std::unique_ptr<KeyValueSpace>
make_pmi2_space(FileDescriptor descriptor, const PmiIdentity& identity, const Deadline& deadline) {
  auto space = std::make_unique<Pmi2Space>(std::move(descriptor), identity);
  space->start(deadline);
  space->log_mapping(deadline);
  return space;
}

} // namespace shmemctl
