// PMI-1.
#include "src/bootstrap/pmi_space.h"

#include <algorithm>
#include <limits>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/bootstrap/pmi_connection.h"

namespace shmemctl {

namespace {

/// MPICH's own client reads and writes lines of this length; some servers have buffers of it.
constexpr std::size_t max_line_bytes = 1023;
constexpr std::size_t max_key_length = 63;
constexpr long long max_size = 1 << 20;

class Pmi1Space final : public KeyValueSpace {
public:
  Pmi1Space(FileDescriptor descriptor, const PmiIdentity& identity)
      : connection_(std::move(descriptor)), rank_(identity.rank), size_(identity.size) {}

  const char* name() const override { return "pmi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::size_t max_key_bytes() const override { return max_key_bytes_; }
  std::size_t max_value_bytes() const override { return max_value_bytes_; }
  bool binary_values() const override { return false; }

  /// For PMI_PORT: who this process is.
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

void Pmi1Space::identify(int id, const Deadline& deadline) {
  const PmiConnection::Wait wait{deadline, health(), "PMI initack"};
  connection_.ask_line(PmiMessage("initack").add("pmiid", std::to_string(id)), "initack", wait);
  long long rank = -1, size = -1;
  for (int word = 0; word < 3; ++word) { // size, rank and debug, in any order
    const PmiMessage set = connection_.receive_line("set", wait);
    rank = set.integer("rank").value_or(rank);
    size = set.integer("size").value_or(size);
  }
  if (size < 1 || size > max_size || rank < 0 || rank >= size)
    throw Error(ExitCode::unavailable, "process manager", "",
                "invalid rank " + std::to_string(rank) + " of " + std::to_string(size),
                "check the output of the launcher");
  rank_ = static_cast<int>(rank);
  size_ = static_cast<int>(size);
}

void Pmi1Space::start(const Deadline& deadline) {
  const PmiMessage init = ask(PmiMessage("init").add("pmi_version", "1").add("pmi_subversion", "1"),
                              "response_to_init", "PMI init", deadline);
  PmiConnection::require_success(init, "PMI init");
  const PmiMessage maxes = ask(PmiMessage("get_maxes"), "maxes", "PMI get_maxes", deadline);
  const PmiMessage kvs =
      ask(PmiMessage("get_my_kvsname"), "my_kvsname", "PMI get_my_kvsname", deadline);
  space_name_ = kvs.find("kvsname").value_or("");
  set_limits(maxes);
}

/// The shortest of what the server takes, what fits a line with our longest key, and what fits the
/// line of its answer.
void Pmi1Space::set_limits(const PmiMessage& maxes) {
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

void Pmi1Space::put(const std::string& key, const std::string& value, const Deadline& deadline) {
  const PmiMessage answer =
      ask(PmiMessage("put").add("kvsname", space_name_).add("key", key).add("value", value),
          "put_result", "PMI put", deadline);
  PmiConnection::require_success(answer, "PMI put");
}

void Pmi1Space::fence(const Deadline& deadline) {
  const PmiMessage answer = ask(PmiMessage("barrier_in"), "barrier_out", "PMI barrier", deadline);
  PmiConnection::require_success(answer, "PMI barrier");
}

std::optional<std::string> Pmi1Space::get(int, const std::string& key, const Deadline& deadline) {
  const PmiMessage answer = ask(PmiMessage("get").add("kvsname", space_name_).add("key", key),
                                "get_result", "PMI get", deadline);
  // A key that is not there has no number of its own.
  const auto rc = answer.integer("rc");
  const std::string words = answer.find("msg").value_or("");
  if (rc && *rc != 0 && (words.empty() || words.find("not_found") != std::string::npos))
    return std::nullopt;
  PmiConnection::require_success(answer, "PMI get");
  return answer.find("value");
}

void Pmi1Space::abort(ExitCode code, const std::string&) noexcept {
  try {
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));
    JobHealth nobody; // the job is failing already
    const PmiMessage request =
        PmiMessage("abort").add("exitcode", std::to_string(static_cast<int>(code)));
    connection_.send(format_pmi1(request), {deadline, nobody, "PMI abort"});
  } catch (const std::exception&) {
    connection_.close(); // it cannot be asked; leaving without a word ends the job too
  }
}

void Pmi1Space::finish(const Deadline& deadline) {
  const PmiMessage answer = ask(PmiMessage("finalize"), "finalize_ack", "PMI finalize", deadline);
  PmiConnection::require_success(answer, "PMI finalize");
  connection_.close();
}

void Pmi1Space::leave(const Deadline& deadline) noexcept {
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

std::unique_ptr<KeyValueSpace>
make_pmi1_space(FileDescriptor descriptor, const PmiIdentity& identity, const Deadline& deadline) {
  auto space = std::make_unique<Pmi1Space>(std::move(descriptor), identity);
  space->start(deadline);
  return space;
}

std::unique_ptr<KeyValueSpace> make_pmi1_space_by_id(FileDescriptor descriptor, int id,
                                                     const Deadline& deadline) {
  auto space = std::make_unique<Pmi1Space>(std::move(descriptor), PmiIdentity{});
  space->identify(id, deadline);
  space->start(deadline);
  return space;
}

} // namespace shmemctl
