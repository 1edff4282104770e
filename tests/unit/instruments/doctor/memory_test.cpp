// Tests of memory limits: whose limits doctor reports.
#include <gtest/gtest.h>

#include "src/instruments/doctor/checks.h"
#include "tests/unit/instruments/doctor/scenario.h"

namespace shmemctl {

TEST(Memlock, SaysWhoseLimitItIs) {
  Machine machine;
  machine.node = healthy_node();
  const auto reason_of = [&machine](const std::string& limit) {
    machine.files.write("/proc/self/limits", "Max locked memory         " + limit + "            " +
                                                 limit + "            bytes\n");
    const Sysroot sysroot = machine.files.sysroot();
    return doctor::memlock({sysroot, machine.node, machine.environment}).reason;
  };
  EXPECT_EQ(reason_of("unlimited"), "locked memory of the process that recorded this node is "
                                    "unlimited; shmemctl inspect --verbose shows the limits of "
                                    "ranks");
  const std::string limited = reason_of("65536");
  EXPECT_EQ(limited.find("locked memory of the process that recorded this node is limited to "), 0U)
      << limited;
}

} // namespace shmemctl
