#include "transports/libfabric/failures.h"

#include <gtest/gtest.h>

namespace shmemctl::fabric {
namespace {

/// "PE 2: cannot atomic operation" is not a sentence.
TEST(FabricFailures, StepsReadAsWhatWasAttemptedOnAPeer) {
  EXPECT_EQ(attempted_on_peer("put"), "put");
  EXPECT_EQ(attempted_on_peer("put with signal"), "put with signal");
  EXPECT_EQ(attempted_on_peer("get"), "get");
  EXPECT_EQ(attempted_on_peer("atomic operation"), "perform an atomic operation");
  EXPECT_EQ(attempted_on_peer("atomic"), "perform an atomic operation");
  EXPECT_EQ(attempted_on_peer("reach"), "reach");
}

} // namespace
} // namespace shmemctl::fabric
