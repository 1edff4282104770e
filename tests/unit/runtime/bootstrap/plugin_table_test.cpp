// The plugin loader against a plugin that does everything wrong; one rank, all in this process.
// Jobs of several ranks are in tests/integration/test_bootstrap_plugin.py.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "src/runtime/bootstrap/plugin_bootstrap.h"
#include "src/runtime/bootstrap/select.h"
#include "tests/support/expect_error.h"
#include "tests/support/set_variable.h"
#include "tests/support/soon.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

using test::soon;

using test::expect_error;
using test::SetVariable;

class Plugin : public ::testing::Test {
protected:
  std::unique_ptr<PluginBootstrap> open(const char* fault = "", double timeout_s = 60) {
    const SetVariable set("FAKE_PLUGIN_FAULT", fault);
    return std::make_unique<PluginBootstrap>(SHMEMCTL_FAKE_PLUGIN, soon(timeout_s));
  }
  TemporaryFolder folder_;
  SetVariable variable_{"FAKE_PLUGIN_FOLDER", folder_.path()};
};

TEST_F(Plugin, Collectives) {
  const auto plugin = open();
  EXPECT_STREQ(plugin->name(), "plugin");
  EXPECT_EQ(plugin->rank(), 0);
  EXPECT_EQ(plugin->size(), 1);
  EXPECT_EQ(allgather_text(*plugin, "hello", soon()), std::vector<std::string>{"hello"});
  int value = 7, got = 0;
  plugin->alltoall(&value, &got, sizeof value, soon());
  EXPECT_EQ(got, 7);
  plugin->allgather(nullptr, nullptr, 0, soon());
  plugin->broadcast(&value, sizeof value, 0, soon());
  plugin->barrier(soon());
  plugin->finish(soon());
}

TEST_F(Plugin, UnloadableFiles) {
  expect_error(ExitCode::unavailable, {"/no/such/plugin.so", "No such file"},
               [] { PluginBootstrap("/no/such/plugin.so", soon()); });
  const std::string text = folder_.write("text.so", "not a library");
  expect_error(ExitCode::unavailable, {"text.so"}, [&] { PluginBootstrap(text, soon()); });
  expect_error(ExitCode::unavailable, {"libm.so.6", "does not export shmemctl_bootstrap_open"},
               [] { PluginBootstrap("libm.so.6", soon()); });
  const Options options(Environment{});
  BootstrapRequest request;
  request.options = &options;
  expect_error(ExitCode::usage, {"no plugin given"}, [&] { open_plugin(request, soon()); });
}

TEST_F(Plugin, WrongTables) {
  expect_error(ExitCode::unavailable, {"compiled for ABI 99 instead of 1"}, [&] { open("abi"); });
  expect_error(ExitCode::unavailable, {"NULL: alltoall, finish"}, [&] { open("null"); });
  expect_error(ExitCode::unavailable, {"rank 1 of 1"}, [&] { open("rank"); });
  expect_error(ExitCode::unavailable, {"rank -1 of 1"}, [&] { open("negative"); });
  expect_error(ExitCode::unavailable, {"of 2147483647"}, [&] { open("huge"); });
}

TEST_F(Plugin, EntryPointFails) {
  expect_error(ExitCode::unavailable, {"no licence"}, [&] { open("open-error"); });
  expect_error(ExitCode::unavailable, {"it did not say why"}, [&] { open("silent"); });
  expect_error(ExitCode::deadline, {"shmemctl_bootstrap_open"}, [&] { open("open-hang", 0.1); });
}

TEST_F(Plugin, CallsFail) {
  const auto barrier_after = [&](const char* fault, double timeout_s = 60) {
    const auto plugin = open();
    const SetVariable set("FAKE_PLUGIN_FAULT", fault);
    plugin->barrier(soon(timeout_s));
  };
  const std::string error =
      expect_error(ExitCode::unavailable, {"barrier", "the switch is on fire"},
                   [&] { barrier_after("error@2"); });
  EXPECT_EQ(error.find('\n'), std::string::npos);
  expect_error(ExitCode::unavailable, {"lost PE 0", "reset"}, [&] { barrier_after("lost@2"); });
  expect_error(ExitCode::deadline, {"PE 0"}, [&] { barrier_after("timeout@2"); });
  expect_error(ExitCode::unavailable, {"4711", "not a status"}, [&] { barrier_after("status@2"); });
  expect_error(ExitCode::unavailable, {"xxxx"}, [&] { barrier_after("endless@2"); });
}

TEST_F(Plugin, AbandonsAHangingCall) {
  const auto plugin = open();
  const SetVariable set("FAKE_PLUGIN_FAULT", "hang@2");
  int value = 1, all = 0;
  expect_error(ExitCode::deadline, {"allgather"},
               [&] { plugin->allgather(&value, &all, sizeof value, soon(0.1)); });
  plugin->abort(ExitCode::deadline, "nobody can be asked any more");
}

TEST_F(Plugin, AJobFailureEndsAHangingCall) {
  class Failed final : public JobHealth {
  public:
    void check() const override {
      throw Error(ExitCode::unavailable, "PE 3", "reach", "it died", "see it");
    }
  };
  const auto plugin = open();
  const SetVariable set("FAKE_PLUGIN_FAULT", "hang@2");
  Failed health;
  plugin->watch(&health);
  expect_error(ExitCode::unavailable, {"PE 3"}, [&] { plugin->barrier(soon(600)); });
  plugin->watch(nullptr);
}

TEST_F(Plugin, TheCauseOfALossTakesPrecedence) {
  class Failed final : public JobHealth {
  public:
    void await_cause(int peer) override {
      throw Error(ExitCode::finding, "the job", "go on", "PE 3 failed first", std::to_string(peer));
    }
  };
  const auto plugin = open();
  const SetVariable set("FAKE_PLUGIN_FAULT", "lost@2");
  Failed health;
  plugin->watch(&health);
  expect_error(ExitCode::finding, {"PE 3 failed first"}, [&] { plugin->barrier(soon()); });
  plugin->watch(nullptr);
}

TEST_F(Plugin, AbortIsPassedOn) {
  open()->abort(ExitCode::unavailable, "a reason");
  EXPECT_EQ(folder_.read("aborted.0"), "3 a reason\n");
}

} // namespace
} // namespace shmemctl
