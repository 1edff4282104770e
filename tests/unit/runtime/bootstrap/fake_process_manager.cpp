#include "tests/unit/runtime/bootstrap/fake_process_manager.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace shmemctl::test {

FakeProcessManager::FakeProcessManager(Protocol protocol, int size, ManagerFault fault)
    : protocol_(protocol), fault_(std::move(fault)), clients_(static_cast<std::size_t>(size)) {
  for (Client& client : clients_) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("socketpair");
    client.descriptor = FileDescriptor(ends[0]);
    process_ends_.emplace_back(ends[1]);
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe");
  stop_reading_ = FileDescriptor(ends[0]);
  stop_writing_ = FileDescriptor(ends[1]);
  thread_ = std::thread([this] { serve(); });
}

FakeProcessManager::~FakeProcessManager() {
  stop_writing_.reset();
  thread_.join();
}

PmiIdentity FakeProcessManager::identity(int rank) const {
  const auto lie = fault_.identities.find(rank);
  return lie != fault_.identities.end()
             ? lie->second
             : PmiIdentity{rank, static_cast<int>(clients_.size()), "job"};
}

void FakeProcessManager::serve() {
  for (;;) {
    std::vector<pollfd> waiting{{stop_reading_.get(), POLLIN, 0}};
    for (const Client& client : clients_)
      // poll() ignores negative descriptors
      waiting.push_back({client.descriptor.get(), POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0 || waiting[0].revents != 0)
      return;
    for (std::size_t rank = 0; rank < clients_.size(); ++rank)
      if (waiting[rank + 1].revents != 0 && clients_[rank].descriptor)
        read(clients_[rank], rank);
  }
}

void FakeProcessManager::read(Client& client, std::size_t rank) {
  char bytes[65536];
  const ssize_t got = ::recv(client.descriptor.get(), bytes, sizeof bytes, 0);
  if (got <= 0) {
    client.descriptor.reset();
    return;
  }
  client.received.append(bytes, static_cast<std::size_t>(got));
  for (;;) {
    std::size_t header = 0, length = client.received.find('\n'), end = length + 1;
    if (client.blocks) {
      if (client.received.size() < 6)
        return;
      header = 6;
      length = std::stoul(client.received.substr(0, 6));
      end = header + length;
      if (client.received.size() < end)
        return;
    } else if (length == std::string::npos) {
      return;
    }
    const std::string text = client.received.substr(header, length);
    client.received.erase(0, end);
    handle(client, rank, text);
    if (!client.descriptor)
      return;
  }
}

void FakeProcessManager::handle(Client& client, std::size_t rank, const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, client.blocks ? ';' : ' ');)
    words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  const std::string command = words["cmd"];
  if (!misbehave(client, rank, command))
    response(client, rank, command, words);
}

bool FakeProcessManager::misbehave(Client& client, std::size_t rank, const std::string& command) {
  if (fault_.at != command || (fault_.rank >= 0 && fault_.rank != static_cast<int>(rank)))
    return false;
  if (seen_++ < fault_.after)
    return false;
  if (fault_.close_all)
    for (Client& each : clients_)
      each.descriptor.reset();
  if (!fault_.reply.empty())
    send(client, fault_.reply);
  return true;
}

void FakeProcessManager::send(Client& client, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t sent =
        ::send(client.descriptor.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0)
      return; // the process has left
    at += static_cast<std::size_t>(sent);
  }
}

void FakeProcessManager::send_block(Client& client, const std::string& block) {
  char length[16];
  std::snprintf(length, sizeof length, "%6zu", block.size());
  send(client, length + block);
}

void FakeProcessManager::response(Client& client, std::size_t rank, const std::string& command,
                                  const Words& words) {
  if (command == "abort") {
    // Slurm parses what follows a semicolon as the next name, also after a doubled one.
    const auto has_semicolon = [](const auto& word) {
      return word.second.find(';') != std::string::npos;
    };
    if (std::none_of(words.begin(), words.end(), has_semicolon))
      ++aborts_;
  } else if (command == "init") {
    const bool version_2 = protocol_ == Protocol::pmi2;
    send(client, version_2 ? "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"
                           : "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    client.blocks = version_2;
  } else if (client.blocks) {
    answer_pmi2(client, rank, command, words);
  } else {
    answer_pmi1(client, command, words);
  }
}

void FakeProcessManager::answer_pmi1(Client& client, const std::string& command,
                                     const Words& words) {
  if (command == "get_maxes")
    send(client, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  else if (command == "get_my_kvsname")
    send(client, "cmd=my_kvsname kvsname=kvs_1234_0\n");
  else if (command == "put") {
    kvs(client)[words.at("key")] = words.at("value");
    send(client, "cmd=put_result rc=0 msg=success\n");
  } else if (command == "barrier_in") {
    enter_fence(client);
  } else if (command == "get") {
    answer_get(client, words.at("key"));
  } else if (command == "finalize") {
    ++finalizes_;
    send(client, "cmd=finalize_ack\n");
  }
}

void FakeProcessManager::answer_pmi2(Client& client, std::size_t rank, const std::string& command,
                                     const Words& words) {
  const std::string start = "cmd=" + command + "-response;";
  if (command == "fullinit")
    send_block(client, start + "rc=0;pmi-version=2;pmi-subversion=0;rank=" + std::to_string(rank) +
                           ";size=" + std::to_string(clients_.size()) + ";appnum=0;");
  else if (command == "kvs-put") {
    kvs(client)[words.at("key")] = words.at("value");
    send_block(client, start + "rc=0;");
  } else if (command == "kvs-fence") {
    enter_fence(client);
  } else if (command == "kvs-get") {
    answer_get(client, words.at("key"));
  } else if (command == "info-getjobattr") {
    send_block(client, start + "rc=0;found=TRUE;value=(vector,(0,1,1));");
  } else if (command == "finalize") {
    ++finalizes_;
    send_block(client, start + "rc=0;");
  }
}

bool FakeProcessManager::all_fenced(int fences) const {
  return std::all_of(clients_.begin(), clients_.end(),
                     [&](const Client& client) { return client.fences >= fences; });
}

void FakeProcessManager::enter_fence(Client& client) {
  ++client.fences;
  client.in_fence = true;
  const auto leave = [](Client& each) {
    if (each.blocks)
      send_block(each, "cmd=kvs-fence-response;rc=0;");
    else
      send(each, "cmd=barrier_out\n");
    each.in_fence = false;
  };
  if (fault_.fence_returns_at_once)
    leave(client);
  else if (all_fenced(client.fences))
    for (Client& each : clients_)
      if (each.in_fence)
        leave(each);
  for (Client& each : clients_)
    if (!each.waiting_key.empty())
      answer_get(each, std::exchange(each.waiting_key, ""));
}

void FakeProcessManager::answer_get(Client& client, const std::string& key) {
  const auto found = kvs(client).find(key);
  const bool there = found != kvs(client).end();
  if (!there && fault_.fence_returns_at_once && !all_fenced(client.fences))
    client.waiting_key = key;
  else if (client.blocks)
    send_block(client, there ? "cmd=kvs-get-response;rc=0;found=TRUE;value=" + found->second + ";"
                             : "cmd=kvs-get-response;rc=0;found=FALSE;");
  else
    send(client, there ? "cmd=get_result rc=0 msg=success value=" + found->second + "\n"
                       : "cmd=get_result rc=-1 msg=key_" + key + "_not_found value=unknown\n");
}

std::vector<Outcome> run_job(FakeProcessManager& manager, Protocol protocol, int size,
                             const std::function<void(Bootstrap&)>& body, double timeout_s) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      try {
        const Deadline deadline = Deadline::after(std::chrono::duration<double>(timeout_s));
        auto make = protocol == Protocol::pmi1 ? make_pmi1_kvs : make_pmi2_kvs;
        const auto bootstrap = make_kvs_bootstrap(
            make(manager.take(rank), manager.identity(rank), deadline), deadline);
        body(*bootstrap);
        outcome.good = true;
      } catch (const Error& error) {
        outcome.code = error.code();
        outcome.message = error.message();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  return outcomes;
}

} // namespace shmemctl::test
