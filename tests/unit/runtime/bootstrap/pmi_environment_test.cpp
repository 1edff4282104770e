// What the launcher's variables must contain, and the errors if they do not.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

#include "src/runtime/bootstrap/pmi_kvs.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {
namespace {

/// The message of the Error that `call` throws, with its exit code before it.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.message();
  }
  return "no error";
}

std::string identity_refusal(const Environment& environment) {
  return refusal([&] { pmi_identity(environment); });
}

TEST(PmiEnvironment, RankAndSize) {
  const PmiIdentity identity =
      pmi_identity({{"PMI_RANK", "2"}, {"PMI_SIZE", " 3 "}, {"PMI_JOBID", "job.1"}});
  EXPECT_EQ(identity.rank, 2);
  EXPECT_EQ(identity.size, 3);
  EXPECT_EQ(identity.job_id, "job.1");
}

TEST(PmiEnvironment, MissingOrWrongRanksAreNamed) {
  EXPECT_EQ(identity_refusal({{"PMI_RANK", "0"}}), "2: PMI_SIZE: not set");
  EXPECT_EQ(identity_refusal({{"PMI_SIZE", "2"}}), "2: PMI_RANK: not set");
  EXPECT_EQ(identity_refusal({{"PMI_SIZE", "2"}, {"PMI_RANK", "2"}}),
            "2: PMI_RANK: \"2\" is not an integer from 0 to 1");
  for (const char* size : {"0", "-1", "two", "1e3", "99999999999999999999", "4294967296", "2;"})
    EXPECT_NE(identity_refusal({{"PMI_SIZE", size}, {"PMI_RANK", "0"}}).find("PMI_SIZE: \""),
              std::string::npos)
        << size;
  for (const char* rank : {"-1", "zero", "0x0", "4294967296"})
    EXPECT_NE(identity_refusal({{"PMI_SIZE", "4"}, {"PMI_RANK", rank}}).find("PMI_RANK: \""),
              std::string::npos)
        << rank;
}

TEST(PmiEnvironment, DescriptorsOfOtherTypes) {
  EXPECT_NE(refusal([] { pmi_descriptor({}); }).find("PMI_FD: not set"), std::string::npos);
  EXPECT_NE(refusal([] {
              pmi_descriptor({{"PMI_FD", "x"}});
            }).find("\"x\" is not an integer from "),
            std::string::npos);
  EXPECT_NE(refusal([] {
              pmi_descriptor({{"PMI_FD", "1048576"}});
            }).find("Bad file descriptor"),
            std::string::npos);
  const FileDescriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const std::string number = std::to_string(file.get());
  EXPECT_NE(refusal([&] {
              pmi_descriptor({{"PMI_FD", number}});
            }).find("non-socket"),
            std::string::npos);
}

TEST(PmiEnvironment, ADescriptorIsTakenAndClosedOnExec) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const FileDescriptor other(ends[1]);
  const FileDescriptor own = pmi_descriptor({{"PMI_FD", std::to_string(ends[0])}});
  EXPECT_EQ(own.get(), ends[0]);
  EXPECT_EQ(::fcntl(ends[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(PmiEnvironment, MalformedPorts) {
  const auto port_refusal = [](const char* port) {
    return refusal([&] {
      pmi_connect({{"PMI_PORT", port}}, Deadline::after(std::chrono::seconds(60)));
    });
  };
  for (const char* port : {"", ":", "host:", ":1", "host"})
    EXPECT_NE(port_refusal(port).find("is not host:port"), std::string::npos) << port;
  EXPECT_NE(port_refusal("127.0.0.1:nonsense").find("cannot resolve"), std::string::npos);
}

TEST(PmiEnvironment, AServerAtAPortSendsRankAndSize) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), raw, length), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), raw, &length), 0);
  std::string received;
  std::thread server([&] {
    const FileDescriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string responses[] = {
        "cmd=initack rc=0\ncmd=set size=1\ncmd=set rank=0\ncmd=set debug=0\n",
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
        "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
        "cmd=my_kvsname kvsname=kvs_0\n", "cmd=finalize_ack\n"};
    for (const std::string& response : responses) {
      char bytes[200];
      const ssize_t got = ::recv(client.get(), bytes, sizeof bytes, 0);
      if (got <= 0)
        return;
      received.append(bytes, static_cast<std::size_t>(got));
      ::send(client.get(), response.data(), response.size(), MSG_NOSIGNAL);
    }
  });
  BootstrapRequest request;
  request.environment = {{"PMI_PORT", "127.0.0.1:" + std::to_string(ntohs(address.sin_port))},
                         {"PMI_ID", "7"}};
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  const std::string result = refusal([&] {
    const auto bootstrap = open_pmi(request, deadline);
    EXPECT_EQ(bootstrap->size(), 1);
    bootstrap->finish(deadline);
  });
  server.join();
  EXPECT_EQ(result, "no error");
  EXPECT_EQ(received, "cmd=initack pmiid=7\ncmd=init pmi_version=1 pmi_subversion=1\n"
                      "cmd=get_maxes\ncmd=get_my_kvsname\ncmd=finalize\n");
}

TEST(PmixEnvironment, NoLauncherIsSaidAtOnce) {
  const Options options(Environment{});
  BootstrapRequest request;
  request.options = &options;
  EXPECT_NE(refusal([&] {
              open_pmix(request, Deadline::after(std::chrono::seconds(60)));
            }).find("not started by a launcher with PMIx"),
            std::string::npos);
}

TEST(PmixEnvironment, RejectsOtherLibraries) {
  const auto with_library = [](const char* library) {
    const Options options(Environment{{"SHMEMCTL_PMIX_LIBRARY", library}});
    BootstrapRequest request;
    request.options = &options;
    request.environment = {{"PMIX_NAMESPACE", "x"}};
    return refusal([&] { open_pmix(request, Deadline::after(std::chrono::seconds(60))); });
  };
  EXPECT_NE(with_library("libc.so.6").find("missing symbol PMIx_Get_version"), std::string::npos);
  EXPECT_NE(with_library("libnosuch.so.9").find("libnosuch.so.9: cannot open"), std::string::npos);
}

} // namespace
} // namespace shmemctl
