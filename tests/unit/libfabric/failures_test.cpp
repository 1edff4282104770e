#include "transports/libfabric/failures.h"

#include <gtest/gtest.h>

namespace shmemctl::fabric {
namespace {

/// "cannot atomic operation PE 2" is no sentence.
TEST(FabricFailures, StepsReadAsWhatWasAttemptedOnAPeer) {
  EXPECT_EQ(attempted_on_peer("put"), "put to");
  EXPECT_EQ(attempted_on_peer("put with signal"), "put with signal to");
  EXPECT_EQ(attempted_on_peer("get"), "get from");
  EXPECT_EQ(attempted_on_peer("atomic operation"), "perform an atomic operation");
  EXPECT_EQ(attempted_on_peer("atomic"), "perform an atomic operation");
  EXPECT_EQ(attempted_on_peer("reach"), "reach");
}

} // namespace
} // namespace shmemctl::fabric
