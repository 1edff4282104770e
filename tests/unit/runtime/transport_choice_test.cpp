// Which transports a job has by its options alone.
#include "src/runtime/transport_choice.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace shmemctl {
namespace {

using Names = std::vector<std::string>;

Names chosen(const std::map<std::string, std::string>& options, bool beyond_memory,
             const Environment& environment = {}) {
  return choose_transports(Options(environment, options), beyond_memory);
}

TEST(TransportChoice, SharedMemoryAndOneForOtherNodes) {
  EXPECT_EQ(chosen({}, false), Names{"shm"});
  EXPECT_EQ(chosen({}, true), (Names{"shm", "auto"}));
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "auto"}}, false), Names{"shm"});
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "ibrc"}}, true), (Names{"shm", "ibrc"}));
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "ucx"}}, false), (Names{"shm", "ucx"}));
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "none"}}, true), Names{"shm"});
  EXPECT_EQ(chosen({{"TRANSPORT", "ibgda, shm"}}, true), (Names{"ibgda", "shm"}));
}

/// A job script for NVSHMEM means the same here.
TEST(TransportChoice, IbgdaComesBesideTheRemoteOne) {
  EXPECT_EQ(chosen({{"IB_ENABLE_IBGDA", "1"}}, true), (Names{"shm", "auto", "ibgda"}));
  EXPECT_EQ(chosen({}, true, {{"NVSHMEM_IB_ENABLE_IBGDA", "1"}}), (Names{"shm", "auto", "ibgda"}));
  EXPECT_EQ(chosen({{"IB_ENABLE_IBGDA", "1"}}, false), Names{"shm"});
  EXPECT_EQ(chosen({{"IB_ENABLE_IBGDA", "1"}, {"TRANSPORT", "shm,ibrc"}}, true),
            (Names{"shm", "ibrc"}));
}

/// As NVSHMEM reads its variable: case does not matter, and an unknown name starts no transport for
/// the proxy, so that IBGDA is alone.
TEST(TransportChoice, NvshmemsRemoteTransportInAnyCase) {
  EXPECT_EQ(chosen({}, true, {{"NVSHMEM_REMOTE_TRANSPORT", "UCX"}}), (Names{"shm", "ucx"}));
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "Libfabric"}}, true), (Names{"shm", "libfabric"}));
  EXPECT_EQ(chosen({}, true, {{"NVSHMEM_REMOTE_TRANSPORT", "NONE"}}), Names{"shm"});
  EXPECT_EQ(chosen({}, true,
                   {{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}, {"NVSHMEM_IB_ENABLE_IBGDA", "true"}}),
            (Names{"shm", "ibgda"}));
  test::expect_error(ExitCode::usage, {"NVSHMEM_REMOTE_TRANSPORT=ibgda", "no transport"}, [] {
    chosen({}, true, {{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}});
  });
}

TEST(TransportChoice, RejectsUnknownNames) {
  test::expect_error(ExitCode::usage, {"\"tcp\"", "unknown transport"}, [] {
    chosen({{"TRANSPORT", "shm,tcp"}}, false);
  });
  test::expect_error(ExitCode::usage, {"\"shm\"", "twice"}, [] {
    chosen({{"TRANSPORT", "shm,shm"}}, false);
  });
}

TEST(TransportChoice, ReportsTheChoiceAndTheRejected) {
  EXPECT_EQ(to_text(RemoteChoice{}), "");
  EXPECT_EQ(to_text(RemoteChoice{"ibrc", true, {}, ""}), "ibrc");
  EXPECT_EQ(to_text(RemoteChoice{"ucx", true, {{"ibrc", "no device"}, {"libfabric", "none"}}, ""}),
            "ucx (not ibrc: no device; not libfabric: none)");
}

/// An advised option must exist and have that meaning.
TEST(TransportChoice, TheOptionForAnotherOneKeepsSharedMemory) {
  const auto option = [](const std::map<std::string, std::string>& set) {
    return option_for("ucx", Options({}, set));
  };
  EXPECT_EQ(option({}), "--remote-transport ucx");
  EXPECT_EQ(option({{"REMOTE_TRANSPORT", "ibrc"}}), "--remote-transport ucx");
  EXPECT_EQ(option({{"TRANSPORT", "shm, ibrc"}}), "--transport shm,ucx");
  EXPECT_EQ(option({{"TRANSPORT", "ibrc"}}), "--transport ucx");
}

} // namespace
} // namespace shmemctl
