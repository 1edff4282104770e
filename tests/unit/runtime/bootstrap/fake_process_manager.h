// A process manager of threads and socket pairs, which misbehaves on demand. It reads and writes
// the wire format with its own code, not the code under test.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/runtime/bootstrap/pmi_kvs.h"

namespace shmemctl::test {

enum class Protocol { pmi1, pmi2 };

struct ManagerFault {
  bool private_spaces = false;                ///< every process sees its own keys only
  bool fence_returns_at_once = false;         ///< Hydra's PMI-2: gets wait instead
  std::string at = {};                        ///< the command at which one of these happens:
  std::string reply = {};                     ///< these bytes are sent instead of a reply
  bool close_all = false;                     ///< the process manager dies
  bool silence = false;                       ///< no reply
  int rank = -1;                              ///< for this rank only; -1 is any
  int after = 0;                              ///< this many such commands are served first
  std::map<int, PmiIdentity> identities = {}; ///< what a rank receives instead of its value
};

class FakeProcessManager {
public:
  FakeProcessManager(Protocol protocol, int size, ManagerFault fault = {});
  ~FakeProcessManager();
  FakeProcessManager(const FakeProcessManager&) = delete;
  FakeProcessManager& operator=(const FakeProcessManager&) = delete;

  /// The end of one process.
  FileDescriptor take(int rank) {
    return std::move(process_ends_.at(static_cast<std::size_t>(rank)));
  }
  PmiIdentity identity(int rank) const;
  int aborts() const { return aborts_.load(); }
  int finalizes() const { return finalizes_.load(); }

private:
  struct Client {
    FileDescriptor descriptor;
    std::string received;
    bool blocks = false; ///< speaks PMI-2
    int fences = 0;
    bool in_fence = false;
    std::string waiting_key; ///< key of a get that waits
    std::map<std::string, std::string> own_space;
  };
  using Words = std::map<std::string, std::string>;

  void serve();
  void read(Client& client, std::size_t rank);
  void handle(Client& client, std::size_t rank, const std::string& text);
  bool misbehave(Client& client, std::size_t rank, const std::string& command);
  void response(Client& client, std::size_t rank, const std::string& command, const Words& words);
  void answer_pmi1(Client& client, const std::string& command, const Words& words);
  void answer_pmi2(Client& client, std::size_t rank, const std::string& command,
                   const Words& words);
  void enter_fence(Client& client);
  void answer_get(Client& client, const std::string& key);
  bool all_fenced(int fences) const;
  std::map<std::string, std::string>& kvs(Client& client) {
    return fault_.private_spaces ? client.own_space : kvs_;
  }
  static void send(Client& client, const std::string& text);
  static void send_block(Client& client, const std::string& block);

  Protocol protocol_;
  ManagerFault fault_;
  std::vector<Client> clients_;
  std::vector<FileDescriptor> process_ends_;
  std::map<std::string, std::string> kvs_;
  FileDescriptor stop_reading_, stop_writing_;
  std::atomic<int> aborts_{0};
  std::atomic<int> finalizes_{0};
  int seen_ = 0; ///< commands seen of the kind that the fault is about
  std::thread thread_;
};

/// How one process of a job ended.
struct Outcome {
  bool good = false;
  ExitCode code = ExitCode::ok;
  std::string message; ///< message of its Error
};

/// Runs `body` on one thread for each rank, each with a bootstrap of that process manager.
std::vector<Outcome> run_job(FakeProcessManager& manager, Protocol protocol, int size,
                             const std::function<void(Bootstrap&)>& body, double timeout_s = 60);

} // namespace shmemctl::test
