// Which transports a job has by its options alone.
#include "src/runtime/transport_choice.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace shmemctl {
namespace {

using Names = std::vector<std::string>;

Names chosen(const std::map<std::string, std::string>& options, int n_nodes,
             const Environment& environment = {}) {
  return choose_transports(Options(environment, options), n_nodes);
}

TEST(TransportChoice, SharedMemoryAndOneForOtherNodes) {
  EXPECT_EQ(chosen({}, 1), Names{"shm"});
  EXPECT_EQ(chosen({}, 2), (Names{"shm", "ibrc"}));
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "ucx"}}, 1), (Names{"shm", "ucx"}));
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "none"}}, 2), Names{"shm"});
  EXPECT_EQ(chosen({{"TRANSPORT", "ibgda, shm"}}, 2), (Names{"ibgda", "shm"}));
}

/// A job script for NVSHMEM means the same here.
TEST(TransportChoice, IbgdaComesBesideTheRemoteOne) {
  EXPECT_EQ(chosen({{"IB_ENABLE_IBGDA", "1"}}, 2), (Names{"shm", "ibrc", "ibgda"}));
  EXPECT_EQ(chosen({}, 2, {{"NVSHMEM_IB_ENABLE_IBGDA", "1"}}), (Names{"shm", "ibrc", "ibgda"}));
  EXPECT_EQ(chosen({{"IB_ENABLE_IBGDA", "1"}}, 1), Names{"shm"});
  EXPECT_EQ(chosen({{"IB_ENABLE_IBGDA", "1"}, {"TRANSPORT", "shm,ibrc"}}, 2),
            (Names{"shm", "ibrc"}));
}

/// As NVSHMEM reads its variable: case does not matter, and a word that it does not know starts no
/// transport for the proxy, so that IBGDA is alone.
TEST(TransportChoice, NvshmemsRemoteTransportInAnyCase) {
  EXPECT_EQ(chosen({}, 2, {{"NVSHMEM_REMOTE_TRANSPORT", "UCX"}}), (Names{"shm", "ucx"}));
  EXPECT_EQ(chosen({{"REMOTE_TRANSPORT", "Libfabric"}}, 2), (Names{"shm", "libfabric"}));
  EXPECT_EQ(chosen({}, 2, {{"NVSHMEM_REMOTE_TRANSPORT", "NONE"}}), Names{"shm"});
  EXPECT_EQ(
      chosen({}, 2, {{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}, {"NVSHMEM_IB_ENABLE_IBGDA", "true"}}),
      (Names{"shm", "ibgda"}));
  test::expect_error(ExitCode::usage, {"NVSHMEM_REMOTE_TRANSPORT=ibgda", "no transport"}, [] {
    chosen({}, 2, {{"NVSHMEM_REMOTE_TRANSPORT", "ibgda"}});
  });
}

TEST(TransportChoice, NamesThatAreNone) {
  test::expect_error(ExitCode::usage, {"\"tcp\"", "there is none"}, [] {
    chosen({{"TRANSPORT", "shm,tcp"}}, 1);
  });
  test::expect_error(ExitCode::usage, {"\"shm\"", "twice"}, [] {
    chosen({{"TRANSPORT", "shm,shm"}}, 1);
  });
}

} // namespace
} // namespace shmemctl
