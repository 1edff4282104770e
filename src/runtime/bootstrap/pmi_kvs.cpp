// Key-value stores over PMI-1, and over PMI-2 (below).
#include <algorithm>
#include <limits>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/runtime/bootstrap/pmi_kvs.h"
#include "src/runtime/bootstrap/pmi_wire.h"

namespace shmemctl {

namespace {

/// MPICH's own client reads and writes lines of this length; some servers have buffers of this
/// size.
constexpr std::size_t max_line_bytes = 1023;
constexpr std::size_t max_key_length = 63;
constexpr long long max_pmi_size = 1 << 20;

class Pmi1Kvs final : public KeyValueStore {
public:
  Pmi1Kvs(FileDescriptor descriptor, const PmiIdentity& identity)
      : connection_(std::move(descriptor)), rank_(identity.rank), size_(identity.size) {}

  const char* name() const override { return "pmi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::size_t max_key_bytes() const override { return max_key_bytes_; }
  std::size_t max_value_bytes() const override { return max_value_bytes_; }
  bool binary_values() const override { return false; }

  /// For PMI_PORT: identifies this process.
  void identify(int id, const Deadline& deadline);
  void start(const Deadline& deadline);

  void put(const std::string& key, const std::string& value, const Deadline& deadline) override;
  void fence(const Deadline& deadline) override;
  std::optional<std::string> get(int rank, const std::string& key,
                                 const Deadline& deadline) override;
  void abort(ExitCode code, const std::string& message) noexcept override;
  void finish(const Deadline& deadline) override;
  void leave(const Deadline& deadline) noexcept override;

private:
  PmiMessage ask(const PmiMessage& request, const std::string& expected, const std::string& step,
                 const Deadline& deadline) {
    return connection_.ask_line(request, expected, {deadline, health(), step});
  }
  void set_limits(const PmiMessage& maxes);

  PmiConnection connection_;
  int rank_, size_;
  std::size_t max_key_bytes_ = max_key_length, max_value_bytes_ = 0;
  std::string space_name_;
};

void Pmi1Kvs::identify(int id, const Deadline& deadline) {
  const PmiConnection::Wait wait{deadline, health(), "PMI initack"};
  connection_.ask_line(PmiMessage("initack").add("pmiid", std::to_string(id)), "initack", wait);
  long long rank = -1, size = -1;
  for (int word = 0; word < 3; ++word) { // size, rank and debug, in any order
    const PmiMessage set = connection_.receive_line("set", wait);
    rank = set.integer("rank").value_or(rank);
    size = set.integer("size").value_or(size);
  }
  if (size < 1 || size > max_pmi_size || rank < 0 || rank >= size)
    throw Error(ExitCode::unavailable, "process manager", "",
                "it reports the invalid rank " + std::to_string(rank) + " of " +
                    std::to_string(size),
                "check the output of the launcher");
  rank_ = static_cast<int>(rank);
  size_ = static_cast<int>(size);
}

void Pmi1Kvs::start(const Deadline& deadline) {
  const PmiMessage init = ask(PmiMessage("init").add("pmi_version", "1").add("pmi_subversion", "1"),
                              "response_to_init", "PMI init", deadline);
  PmiConnection::require_success(init, "PMI init");
  const PmiMessage maxes = ask(PmiMessage("get_maxes"), "maxes", "PMI get_maxes", deadline);
  const PmiMessage kvs =
      ask(PmiMessage("get_my_kvsname"), "my_kvsname", "PMI get_my_kvsname", deadline);
  space_name_ = kvs.find("kvsname").value_or("");
  set_limits(maxes);
}

/// Limits keys and values to what the server accepts, and values to what fits into the line of a
/// put with the longest key. The line of the answer to a get has no key, so that it has room, too.
void Pmi1Kvs::set_limits(const PmiMessage& maxes) {
  const auto limit = [&](const char* name) {
    const long long value = maxes.integer(name).value_or(0);
    return static_cast<std::size_t>(std::clamp(value, 1LL, 1LL << 16)) - 1;
  };
  max_key_bytes_ = std::min(limit("keylen_max"), max_key_length);
  const std::string line = format_pmi1(PmiMessage("put")
                                           .add("kvsname", space_name_)
                                           .add("key", std::string(max_key_bytes_, 'k'))
                                           .add("value", ""));
  max_value_bytes_ =
      std::min(limit("vallen_max"), max_line_bytes - std::min(max_line_bytes, line.size()));
}

void Pmi1Kvs::put(const std::string& key, const std::string& value, const Deadline& deadline) {
  const PmiMessage response =
      ask(PmiMessage("put").add("kvsname", space_name_).add("key", key).add("value", value),
          "put_result", "PMI put", deadline);
  PmiConnection::require_success(response, "PMI put");
}

void Pmi1Kvs::fence(const Deadline& deadline) {
  const PmiMessage response = ask(PmiMessage("barrier_in"), "barrier_out", "PMI barrier", deadline);
  PmiConnection::require_success(response, "PMI barrier");
}

std::optional<std::string> Pmi1Kvs::get(int, const std::string& key, const Deadline& deadline) {
  const PmiMessage response = ask(PmiMessage("get").add("kvsname", space_name_).add("key", key),
                                  "get_result", "PMI get", deadline);
  // There is no error code for a missing key.
  const auto rc = response.integer("rc");
  const std::string words = response.find("msg").value_or("");
  if (rc && *rc != 0 && (words.empty() || words.find("not_found") != std::string::npos))
    return std::nullopt;
  PmiConnection::require_success(response, "PMI get");
  return response.find("value");
}

void Pmi1Kvs::abort(ExitCode code, const std::string&) noexcept {
  try {
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));
    JobHealth nobody; // the job is failing already
    const PmiMessage request =
        PmiMessage("abort").add("exitcode", std::to_string(static_cast<int>(code)));
    connection_.send(format_pmi1(request), {deadline, nobody, "PMI abort"});
  } catch (const std::exception&) {
    connection_.close(); // if the request cannot be sent: closing the connection without `finalize`
                         // ends the job, too
  }
}

void Pmi1Kvs::finish(const Deadline& deadline) {
  const PmiMessage response = ask(PmiMessage("finalize"), "finalize_ack", "PMI finalize", deadline);
  PmiConnection::require_success(response, "PMI finalize");
  connection_.close();
}

void Pmi1Kvs::leave(const Deadline& deadline) noexcept {
  try {
    JobHealth nobody; // the job is ending already
    connection_.ask_line(PmiMessage("finalize"), "finalize_ack",
                         {deadline, nobody, "PMI finalize"});
  } catch (const std::exception& failure) {
    log(LogLevel::debug, "bootstrap", failure.what());
  }
  connection_.close();
}

} // namespace

std::unique_ptr<KeyValueStore> make_pmi1_kvs(FileDescriptor descriptor, const PmiIdentity& identity,
                                             const Deadline& deadline) {
  auto kvs = std::make_unique<Pmi1Kvs>(std::move(descriptor), identity);
  kvs->start(deadline);
  return kvs;
}

std::unique_ptr<KeyValueStore> make_pmi1_kvs_by_id(FileDescriptor descriptor, int id,
                                                   const Deadline& deadline) {
  auto kvs = std::make_unique<Pmi1Kvs>(std::move(descriptor), PmiIdentity{});
  kvs->identify(id, deadline);
  kvs->start(deadline);
  return kvs;
}

// PMI-2.

namespace {

/// PMI-2's limit is 1024 with the terminating zero; Slurm refuses more.
constexpr std::size_t max_value_length = 1023;

class Pmi2Kvs final : public KeyValueStore {
public:
  Pmi2Kvs(FileDescriptor descriptor, const PmiIdentity& identity)
      : connection_(std::move(descriptor)), identity_(identity) {}

  const char* name() const override { return "pmi2"; }
  int rank() const override { return identity_.rank; }
  int size() const override { return identity_.size; }
  std::size_t max_key_bytes() const override { return max_key_length; }
  std::size_t max_value_bytes() const override { return max_value_length; }
  bool binary_values() const override { return false; }
  /// Hydra answers kvs-fence at once, and kvs-get waits instead.
  bool fence_synchronizes() const override { return false; }

  void start(const Deadline& deadline);
  /// Logs the launcher's mapping of processes to nodes.
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
  /// Sends the request and returns its answer. Throws Error if it was refused.
  PmiMessage ask(const PmiMessage& request, const Deadline& deadline, int peer = -1);
  static std::optional<std::string> found_value(const PmiMessage& response);

  PmiConnection connection_;
  PmiIdentity identity_;
};

PmiMessage Pmi2Kvs::ask(const PmiMessage& request, const Deadline& deadline, int peer) {
  const std::string step = "PMI-2 " + request.command();
  PmiMessage response = connection_.ask_block(request, {deadline, health(), step, peer});
  PmiConnection::require_success(response, step);
  return response;
}

void Pmi2Kvs::start(const Deadline& deadline) {
  const PmiMessage init =
      connection_.ask_line(PmiMessage("init").add("pmi_version", "2").add("pmi_subversion", "0"),
                           "response_to_init", {deadline, health(), "PMI-2 init"});
  PmiConnection::require_success(init, "PMI-2 init");
  if (const long long version = init.integer("pmi_version").value_or(2); version != 2)
    throw Error(ExitCode::unavailable, "process manager", "complete PMI-2 init",
                "it speaks version " + std::to_string(version) + " of PMI",
                "set SHMEMCTL_BOOTSTRAP=pmi and unset SHMEMCTL_BOOTSTRAP_PMI, to use PMI-1");
  const PmiMessage response = ask(PmiMessage("fullinit")
                                      .add("pmijobid", identity_.job_id)
                                      .add("pmirank", std::to_string(identity_.rank))
                                      .add("threaded", "FALSE"),
                                  deadline);
  const auto rank = response.integer("rank"), size = response.integer("size");
  if (rank != identity_.rank || size != identity_.size)
    throw Error(ExitCode::unavailable, "process manager", "complete PMI-2 fullinit",
                "it reports rank " + printable(response.find("rank").value_or("?"), 20) + " of " +
                    printable(response.find("size").value_or("?"), 20) +
                    ", but PMI_RANK and PMI_SIZE are " + std::to_string(identity_.rank) + " and " +
                    std::to_string(identity_.size),
                "let the launcher set PMI_RANK and PMI_SIZE");
}

std::optional<std::string> Pmi2Kvs::found_value(const PmiMessage& response) {
  for (const char* name : {"found", "flag"}) // the specification's keyword, and Slurm's
    if (const auto found = response.find(name); found && *found != "TRUE")
      return std::nullopt;
  return response.find("value");
}

void Pmi2Kvs::log_mapping(const Deadline& deadline) {
  if (!log_enabled(LogLevel::debug, "bootstrap"))
    return;
  const PmiMessage response =
      ask(PmiMessage("info-getjobattr").add("key", "PMI_process_mapping"), deadline);
  log(LogLevel::debug, "bootstrap",
      "PMI_process_mapping: " + printable(found_value(response).value_or("unknown")));
}

std::optional<std::string> Pmi2Kvs::get(int rank, const std::string& key,
                                        const Deadline& deadline) {
  return found_value(ask(PmiMessage("kvs-get")
                             .add("jobid", identity_.job_id)
                             .add("srcid", std::to_string(rank))
                             .add("key", key),
                         deadline, rank));
}

void Pmi2Kvs::abort(ExitCode, const std::string& message) noexcept {
  try {
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));
    JobHealth nobody; // the job is failing already
    // Slurm does not know that ";;" is an escaped semicolon, and would parse what follows as names.
    std::string words = printable(message);
    std::replace(words.begin(), words.end(), ';', ',');
    const PmiMessage request = PmiMessage("abort").add("isworld", "TRUE").add("msg", words);
    connection_.send(format_pmi2(request), {deadline, nobody, "PMI-2 abort"});
  } catch (const std::exception&) {
    connection_.close(); // if the request cannot be sent: closing the connection without `finalize`
                         // ends the job, too
  }
}

void Pmi2Kvs::leave(const Deadline& deadline) noexcept {
  try {
    JobHealth nobody; // the job is ending already
    connection_.ask_block(PmiMessage("finalize"), {deadline, nobody, "PMI-2 finalize"});
  } catch (const std::exception& failure) {
    log(LogLevel::debug, "bootstrap", failure.what());
  }
  connection_.close();
}

} // namespace

std::unique_ptr<KeyValueStore> make_pmi2_kvs(FileDescriptor descriptor, const PmiIdentity& identity,
                                             const Deadline& deadline) {
  auto kvs = std::make_unique<Pmi2Kvs>(std::move(descriptor), identity);
  kvs->start(deadline);
  kvs->log_mapping(deadline);
  return kvs;
}

} // namespace shmemctl
