// The bootstraps uid and local as selected by options and launchers.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

#include "src/base/error.h"
#include "src/runtime/bootstrap/interfaces.h"
#include "src/runtime/bootstrap/launcher_variables.h"
#include "src/runtime/bootstrap/select.h"
#include "tests/support/findings.h"
#include "tests/support/soon.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

using test::soon;
using testing::contains;

RankAndSize rank_and_size_in(const Environment& environment) {
  return rank_and_size(Options(environment), environment);
}

template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << error.message();
    return error.message();
  }
  return "no Error";
}

TEST(UidOpen, RankAndSizeComeFromTheOptionsFirst) {
  Environment environment = {{"SHMEMCTL_BOOTSTRAP_UID_RANK", "3"},
                             {"SHMEMCTL_BOOTSTRAP_UID_SIZE", "8"},
                             {"PMI_RANK", "1"},
                             {"PMI_SIZE", "2"}};
  EXPECT_EQ(rank_and_size_in(environment).rank, 3);
  EXPECT_EQ(rank_and_size_in(environment).size, 8);
  environment.erase("SHMEMCTL_BOOTSTRAP_UID_SIZE");
  EXPECT_TRUE(contains(message_of([&] { rank_and_size_in(environment); }), "BOOTSTRAP_UID_SIZE"));
}

TEST(UidOpen, EveryLauncherIsAskedInTurn) {
  Environment environment;
  // The last one first: each that is added wins over those after it.
  const std::vector<LauncherVariables>& all = launcher_variables();
  for (std::size_t i = all.size(); i-- > 0;) {
    environment[all[i].rank] = std::to_string(i);
    EXPECT_TRUE(i + 1 < all.size() ||
                contains(message_of([&] { rank_and_size_in(environment); }), all[i].rank))
        << "a rank without a size is not enough";
    environment[all[i].size] = std::to_string(i + 10);
    EXPECT_EQ(rank_and_size_in(environment).rank, static_cast<int>(i));
    EXPECT_EQ(rank_and_size_in(environment).size, static_cast<int>(i) + 10);
    EXPECT_TRUE(contains(rank_and_size_in(environment).source, all[i].rank));
  }
}

TEST(UidOpen, NamesAMalformedVariable) {
  for (const char* bad : {"x", "-1", "1.5", "99999999999", " "}) {
    const Environment environment = {{"PMI_RANK", bad}, {"PMI_SIZE", "2"}};
    EXPECT_TRUE(contains(message_of([&] { rank_and_size_in(environment); }), "PMI_RANK")) << bad;
  }
  const Environment environment = {{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}};
  EXPECT_TRUE(contains(message_of([&] { rank_and_size_in(environment); }), "PMI_SIZE"));
}

TEST(UidOpen, SessionIds) {
  EXPECT_EQ(parse_session_id("node-1.example:4711").host, "node-1.example");
  EXPECT_EQ(parse_session_id("node-1:4711").port, 4711);
  EXPECT_FALSE(parse_session_id("node-1:4711").is_address);
  EXPECT_TRUE(parse_session_id("10.0.0.1:4711").is_address);
  EXPECT_TRUE(parse_session_id("[fd00::1]:4711").is_address);
  for (const std::string bad : {"", "node", ":1", "node:", "node:0", "node:65536", "node:x",
                                "no de:1", "fd00::1:4711", "[fd00::1:1", "a/b:1", "[x]:1"})
    EXPECT_FALSE(message_of([&] { parse_session_id(bad); }) == "no Error") << bad;
}

TEST(UidOpen, NamesAreResolved) {
  const std::vector<SocketAddress> found = resolve("localhost", 4711, AF_UNSPEC, soon());
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].port(), 4711);
}

/// A port that was free a moment ago.
int free_port() {
  return Listener(SocketAddress::parse("127.0.0.1:0")).address().port();
}

/// The results of `n` PEs when each opens its bootstrap with its environment.
std::vector<std::string> open_all(const std::vector<Environment>& environments,
                                  double timeout_s = 60) {
  std::vector<std::string> messages(environments.size());
  std::vector<std::thread> threads;
  for (std::size_t pe = 0; pe < environments.size(); ++pe)
    threads.emplace_back([&, pe] {
      try {
        const Options options(environments[pe]);
        BootstrapRequest request;
        request.options = &options;
        request.environment = environments[pe];
        const bool local = environments[pe].count(local_variables::id) != 0;
        const auto bootstrap =
            local ? open_local(request, soon(timeout_s)) : open_uid(request, soon(timeout_s));
        messages[pe] = bootstrap->name();
        const std::vector<int> ranks = allgather_value(*bootstrap, bootstrap->rank(), soon());
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
          EXPECT_EQ(ranks[rank], static_cast<int>(rank));
        bootstrap->finish(soon());
      } catch (const Error& error) {
        messages[pe] = error.message();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  return messages;
}

std::vector<Environment> session(int n_pes, const std::string& id) {
  std::vector<Environment> environments;
  for (int pe = 0; pe < n_pes; ++pe)
    environments.push_back({{"NVSHMEM_BOOTSTRAP_UID_SESSION_ID", id},
                            {"SHMEMCTL_BOOTSTRAP_UID_SECRET", "open sesame"},
                            {"SLURM_PROCID", std::to_string(pe)},
                            {"SLURM_NTASKS", std::to_string(n_pes)}});
  return environments;
}

TEST(UidOpen, ASessionIdAndASecretAreEnough) {
  for (const char* host : {"127.0.0.1", "localhost"})
    EXPECT_EQ(open_all(session(5, std::string(host) + ":" + std::to_string(free_port()))),
              std::vector<std::string>(5, "uid"));
}

TEST(UidOpen, TheHostsOwnNameWillDo) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  try {
    resolve(name, 1, AF_INET, soon());
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  auto environments = session(3, std::string(name) + ":" + std::to_string(free_port()));
  for (Environment& environment : environments)
    environment["SHMEMCTL_BOOTSTRAP_UID_SOCK_FAMILY"] = "AF_INET";
  EXPECT_EQ(open_all(environments), std::vector<std::string>(3, "uid"));
}

TEST(UidOpen, TheSecretMayStandInAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("secret", "open sesame\n");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  auto environments = session(3, "127.0.0.1:" + std::to_string(free_port()));
  environments[1].erase("SHMEMCTL_BOOTSTRAP_UID_SECRET");
  environments[1]["SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE"] = path;
  EXPECT_EQ(open_all(environments), std::vector<std::string>(3, "uid"));
}

TEST(UidOpen, ASecretThatEveryUserCanReadIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.write("secret", "open sesame\n");
  auto environments = session(1, "127.0.0.1:" + std::to_string(free_port()));
  environments[0].erase("SHMEMCTL_BOOTSTRAP_UID_SECRET");
  environments[0]["SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE"] = path;
  for (const mode_t mode : {0604, 0644, 0666}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const std::string message = open_all(environments)[0];
    EXPECT_TRUE(contains(message, "readable by every user of this host")) << message;
    EXPECT_TRUE(contains(message, path)) << message;
  }
  for (const mode_t mode : {0600, 0400, 0640}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(open_all(environments)[0], "uid");
  }
}

TEST(UidOpen, AnotherSecretIsRefused) {
  auto environments = session(2, "127.0.0.1:" + std::to_string(free_port()));
  environments[1]["SHMEMCTL_BOOTSTRAP_UID_SECRET"] = "open barley";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int timeout_s = 30; // the key derivation takes seconds there
#else
  constexpr int timeout_s = 1;
#endif
  const std::vector<std::string> messages = open_all(environments, timeout_s);
  EXPECT_TRUE(contains(messages[0], "1 of 2 PEs has not joined: PE 1")) << messages[0];
  EXPECT_TRUE(contains(messages[1], "another job")) << messages[1];
}

TEST(UidOpen, NamesWhatIsMissing) {
  const std::string id = "127.0.0.1:" + std::to_string(free_port());
  auto no_secret = session(1, id);
  no_secret[0].erase("SHMEMCTL_BOOTSTRAP_UID_SECRET");
  EXPECT_TRUE(contains(open_all(no_secret)[0], "no secret"));
  auto no_id = session(1, id);
  no_id[0].erase("NVSHMEM_BOOTSTRAP_UID_SESSION_ID");
  EXPECT_TRUE(contains(open_all(no_id)[0], "BOOTSTRAP_UID_SESSION_ID is set"));
  auto two_secrets = session(1, id);
  two_secrets[0]["SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE"] = "/dev/null";
  EXPECT_TRUE(contains(open_all(two_secrets)[0], "BOOTSTRAP_UID_SECRET_FILE is also set"));
  auto empty_file = session(1, id);
  empty_file[0].erase("SHMEMCTL_BOOTSTRAP_UID_SECRET");
  empty_file[0]["SHMEMCTL_BOOTSTRAP_UID_SECRET_FILE"] = "/dev/null";
  EXPECT_TRUE(contains(open_all(empty_file)[0], "/dev/null")) << open_all(empty_file)[0];
  auto no_rank = session(1, id);
  no_rank[0].erase("SLURM_PROCID");
  EXPECT_TRUE(contains(open_all(no_rank)[0], "SLURM_PROCID"));
}

TEST(UidOpen, RankZeroHasToBeOnTheNamedHost) {
  const std::string message = open_all(session(1, "192.0.2.77:4711"))[0];
  EXPECT_TRUE(contains(message, "is not an address of this host")) << message;
  EXPECT_TRUE(contains(message, "192.0.2.77")) << message;
}

TEST(UidOpen, AnIdFromElsewhere) {
  const auto rendezvous = Rendezvous::start({}, 20);
  std::vector<Environment> environments;
  for (int pe = 0; pe < 3; ++pe)
    environments.push_back({{"SHMEMCTL_BOOTSTRAP_UID", rendezvous->id().text()},
                            {"RANK", std::to_string(pe)},
                            {"WORLD_SIZE", "3"}});
  EXPECT_EQ(open_all(environments), std::vector<std::string>(3, "uid"));
}

TEST(LocalOpen, ReadsTheVariablesOfRun) {
  const auto rendezvous = Rendezvous::start_local(20);
  EXPECT_TRUE(contains(rendezvous->id().text(), "unix:shmemctl-"));
  std::vector<Environment> environments;
  for (int pe = 0; pe < 4; ++pe)
    environments.push_back({{local_variables::id, rendezvous->id().text()},
                            {local_variables::rank, std::to_string(pe)},
                            {local_variables::size, "4"}});
  EXPECT_EQ(open_all(environments), std::vector<std::string>(4, "local"));
}

TEST(LocalOpen, RejectsVariablesThatRunNeverSets) {
  const Environment good = {
      {local_variables::id, "shmemctl-uid-1:" + std::string(32, '0') + ":10.0.0.1:1"},
      {local_variables::rank, "0"},
      {local_variables::size, "1"}};
  EXPECT_TRUE(contains(open_all({good})[0], "another bootstrap"));
  for (const char* name : {local_variables::rank, local_variables::size}) {
    Environment bad = good;
    bad.erase(name);
    EXPECT_TRUE(contains(open_all({bad})[0], name));
    bad[name] = "one";
    EXPECT_TRUE(contains(open_all({bad})[0], name));
  }
  Environment garbage = good;
  garbage[local_variables::id] = "garbage";
  EXPECT_TRUE(contains(open_all({garbage})[0], "unique id"));
}

} // namespace
} // namespace shmemctl
