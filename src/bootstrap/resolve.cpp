#include "src/bootstrap/resolve.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <netdb.h>

#include "src/base/error.h"
#include "src/base/service_thread.h"
#include "src/base/unique_handle.h"

namespace shmemctl {

namespace {

using AddressList = CHandle<addrinfo, freeaddrinfo>;
constexpr std::chrono::milliseconds pause_between_questions{200};

/// getaddrinfo(3) cannot be interrupted: it runs on a thread that outlives a wait given up.
struct Question {
  std::mutex mutex;
  std::condition_variable answered;
  bool done = false;
  int result = 0;
  AddressList list;
};

std::shared_ptr<Question> ask(const std::string& host, int family) {
  auto question = std::make_shared<Question>();
  start_service_thread("resolve", [question, host, family] {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* first = nullptr;
    const int result = getaddrinfo(host.c_str(), nullptr, &hints, &first);
    const std::lock_guard lock(question->mutex);
    question->result = result;
    question->list.reset(result == 0 ? first : nullptr);
    question->done = true;
    question->answered.notify_one();
  }).detach();
  return question;
}

[[noreturn]] void late(const std::string& host) {
  throw Error(ExitCode::deadline, "host name " + printable(host), "resolve",
              "timed out without a reply", "check the name server, or use an address");
}

} // namespace

std::vector<SocketAddress> resolve(const std::string& host, int port, int family,
                                   const Deadline& deadline) {
  for (;;) {
    const std::shared_ptr<Question> question = ask(host, family);
    std::unique_lock lock(question->mutex);
    if (!question->answered.wait_until(lock, deadline.at(), [&] { return question->done; }))
      late(host);
    if (question->result == 0) {
      std::vector<SocketAddress> addresses;
      for (const addrinfo* each = question->list.get(); each; each = each->ai_next)
        addresses.push_back(SocketAddress(each->ai_addr, each->ai_addrlen).with_port(port));
      return addresses;
    }
    if (question->result != EAI_AGAIN)
      throw Error(ExitCode::unavailable, "host name " + printable(host), "resolve",
                  gai_strerror(question->result), "check the name, or use an address");
    question->answered.wait_for(lock, pause_between_questions, [] { return false; });
    if (deadline.passed())
      late(host);
  }
}

} // namespace shmemctl
