// The errors if UCX is missing or cannot be used, and what reaches the terminal.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include "tests/support/forked_pes.h"
#include "tests/support/set_variable.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/transport_world.h"
#include "transports/registry.h"
#include "transports/ucx/ucx.h"

namespace shmemctl::test {
namespace {

std::unique_ptr<Transport> alone(const std::map<std::string, std::string>& options,
                                 const UcxSettings& settings = {}) {
  const Options parsed({}, options);
  return make_ucx_transport({0, 2, "here", &parsed, nullptr, 10}, settings);
}

/// Why this PE reaches no other; "" if it does.
std::string reason_of(Transport& transport) {
  const std::string info = transport.local_info();
  EXPECT_LE(info.size(), 1024u);
  const PeerLocation me{0, 1, 1, info}, peer{1, 2, 2, info};
  const Reach reach = transport.reach(me, peer);
  return reach.capabilities == 0 ? reach.reason : "";
}

TEST(UcxLibrary, MissingIsSaidWithThePackage) {
  const auto transport = alone({{"UCX_LIBRARY", "libnot-there.so.7"}});
  const std::string reason = reason_of(*transport);
  if (!find_transport("ucx")->built) {
    EXPECT_NE(reason.find("libucx-dev"), std::string::npos) << reason;
    return;
  }
  EXPECT_NE(reason.find("libnot-there.so.7"), std::string::npos) << reason;
  EXPECT_NE(reason.find("libucx0"), std::string::npos) << reason;
}

TEST(UcxLibrary, AnotherLibraryIsNotTakenForIt) {
  if (!find_transport("ucx")->built)
    GTEST_SKIP() << "built without UCX's headers";
  const std::string reason = reason_of(*alone({{"UCX_LIBRARY", "libm.so.6"}}));
  EXPECT_NE(reason.find("ucp_get_version"), std::string::npos) << reason;
}

TEST(UcxLibrary, OnePeWithoutItIsNamedByTheOthers) {
  const auto with = alone({}), without = alone({{"UCX_LIBRARY", "libnot-there.so.7"}});
  if (const std::string reason = reason_of(*with); !reason.empty())
    GTEST_SKIP() << reason;
  const PeerLocation me{0, 1, 1, with->local_info()}, peer{1, 2, 2, without->local_info()};
  const Reach reach = with->reach(me, peer);
  EXPECT_EQ(reach.capabilities, 0u);
  EXPECT_NE(reach.reason.find("PE 1"), std::string::npos) << reach.reason;
  EXPECT_NE(reach.reason.find("libnot-there.so.7"), std::string::npos) << reach.reason;
  EXPECT_EQ(with->reach(me, {1, 2, 2, ""}).capabilities, 0u);
}

TEST(UcxLibrary, OnePeWithoutItDoesNotHoldUpTheOthers) {
  if (const std::string reason = reason_of(*alone({})); !reason.empty())
    GTEST_SKIP() << reason;
  const std::string reason = run_transport_world(
      [](const TransportSetup& setup) {
        const Options missing({}, {{"UCX_LIBRARY", "libnot-there.so.7"}});
        TransportSetup changed = setup;
        if (setup.pe == 1)
          changed.options = &missing;
        return make_ucx_transport(changed);
      },
      [](TransportPe&) { ADD_FAILURE() << "nobody reaches PE 1"; });
  EXPECT_NE(reason.find("PE 1"), std::string::npos) << reason;
}

TEST(UcxLibrary, SettingsThatLeaveNothingAreAReason) {
  if (const std::string reason = reason_of(*alone({})); !reason.empty())
    GTEST_SKIP() << reason;
  const std::string reason = reason_of(*alone({}, {{"TLS", "nonsense"}}));
  EXPECT_NE(reason.find("UCX"), std::string::npos) << reason;
  const std::string unknown = reason_of(*alone({}, {{"FENCE_MODE", "nonsense"}, {"TLS", "tcp"}}));
  EXPECT_TRUE(unknown.empty() || unknown.find("FENCE_MODE") != std::string::npos) << unknown;
}

TEST(UcxLibrary, InterfacesThatAreNotThereAreAnError) {
  const auto transport = alone({}, {{"TLS", "tcp"}});
  if (const std::string reason = reason_of(*transport); !reason.empty())
    GTEST_SKIP() << reason;
  EXPECT_THROW(transport->use_nics({{"no-such-nic", 1}}), Error);
  // The worker of the context before is gone.
  transport->progress();
  EXPECT_TRUE(transport->traffic().empty());
  transport->use_nics({{"lo", 1}});
  EXPECT_EQ(reason_of(*transport), "");
}

/// What a process that uses UCX writes to stdout and stderr.
struct Output {
  std::string out, err, reason;
};
Output output_of(const std::map<std::string, std::string>& variables) {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/out", err = folder.path() + "/err";
  std::fflush(nullptr); // otherwise the child writes what this process has not written yet
  ForkedPes child(1, [&](int) {
    for (const auto& [name, value] : variables)
      ::setenv(name.c_str(), value.c_str(), 1);
    for (const auto& [descriptor, file] : {std::pair(1, out), std::pair(2, err)}) {
      const FileDescriptor opened(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
      require(::dup2(opened.get(), descriptor) == descriptor, "dup2");
    }
    const Options options({});
    const auto transport = make_ucx_transport({0, 1, "here", &options, nullptr, 10});
    folder.write("reason", reason_of(*transport));
    std::fflush(nullptr);
  });
  EXPECT_EQ(child.ends()[0], "");
  return {folder.read("out"), folder.read("err"), folder.read("reason")};
}

TEST(UcxLibrary, ItsMessagesStayOffTheTerminal) {
  // UCX warns of both.
  std::map<std::string, std::string> variables = {{"UCX_TLS", "tcp,no_such_transport"},
                                                  {"UCX_NO_SUCH_VARIABLE", "1"}};
  Output output = output_of(variables);
  if (!output.reason.empty())
    GTEST_SKIP() << output.reason;
  EXPECT_EQ(output.out, "");
  EXPECT_EQ(output.err, "");
  variables["UCX_LOG_LEVEL"] = "warn"; // the user wants to see UCX's messages
  output = output_of(variables);
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find("no_such_transport"), std::string::npos) << output.err;
}

std::map<int, sighandler_t> handlers() {
  std::map<int, sighandler_t> found;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGUSR1}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    found[signal] = action.sa_handler;
  }
  return found;
}

TEST(UcxLibrary, ItsSignalHandlersAreNotInstalled) {
  ForkedPes child(1, [](int) {
    const std::map<int, sighandler_t> before = handlers(); // a sanitizer has some
    const Options options({});
    make_ucx_transport({0, 1, "here", &options, nullptr, 10})->local_info();
    for (const auto& [signal, handler] : handlers())
      require(handler == before.at(signal), "signal " + std::to_string(signal) + " as it was");
  });
  EXPECT_EQ(child.ends()[0], "");
}

} // namespace
} // namespace shmemctl::test
