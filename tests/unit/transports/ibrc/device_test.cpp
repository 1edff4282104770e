// Which devices are used, and why others are excluded.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/expect_error.h"
#include "tests/support/fake_verbs.h"
#include "tests/support/temporary_folder.h"
#include "transports/verbs/async_events.h"
#include "transports/verbs/device.h"
#include "transports/verbs/device_share.h"
#include "transports/verbs/queue_pair.h"
#include "transports/verbs/status.h"

namespace shmemctl::verbs {
namespace {

using shmemctl::test::expect_error;
using shmemctl::test::FakeDevice;
using shmemctl::test::FakePort;
using shmemctl::test::FakeVerbs;

FakeDevice named(const std::string& name) {
  FakeDevice device;
  device.name = name;
  return device;
}

TEST(Survey, DevicesInTheOrderOfPeople) {
  FakeVerbs fake({named("mlx5_10"), named("mlx5_2")});
  const Survey found = survey(fake.functions());
  ASSERT_EQ(found.devices.size(), 2u);
  EXPECT_EQ(found.devices[0]->name(), "mlx5_2");
  EXPECT_EQ(found.devices[1]->name(), "mlx5_10");
  EXPECT_EQ(found.reason(), "");
}

TEST(Survey, NoDevice) {
  FakeVerbs fake({});
  const TemporaryFolder machine;
  const auto reason = [&] { return survey(fake.functions(), Sysroot(machine.path())).reason(); };
  EXPECT_EQ(reason(), "there is no RDMA device");
  machine.write("sys/class/infiniband/rxe0/node_type", "1: CA\n");
  EXPECT_NE(reason().find("the kernel has rxe0, but /dev/infiniband/uverbs* is missing"),
            std::string::npos);
}

TEST(Survey, WhatCannotBeUsedIsLeftOutWithTheReason) {
  FakeDevice iwarp = named("siw0"), efa = named("rdmap0"), gone = named("mlx5_0");
  iwarp.transport_type = IBV_TRANSPORT_IWARP;
  efa.transport_type = IBV_TRANSPORT_UNSPECIFIED;
  gone.open_error = ENOENT;
  FakeVerbs fake({iwarp, efa, gone});
  const std::string reason = survey(fake.functions()).reason();
  EXPECT_NE(reason.find("siw0: iWARP connects by the RDMA connection manager only"),
            std::string::npos);
  EXPECT_NE(reason.find("rdmap0: it has no RC queue pairs"), std::string::npos);
  EXPECT_NE(reason.find("mlx5_0: /dev/infiniband/uverbs_mlx5_0 is missing"), std::string::npos);
}

TEST(Device, PortsAndTheirGids) {
  FakeDevice device = named("mlx5_0");
  FakePort second;
  second.state = IBV_PORT_DOWN;
  second.ethernet = false;
  second.lid = 9;
  second.active_mtu = IBV_MTU_2048;
  second.gids = {{0, GidType::infiniband, {0xfe, 0x80}}};
  device.ports[0].gids = {test::link_local_gid(0, 1), test::ipv4_gid(5, 1, GidType::roce_v1)};
  device.ports.push_back(second);
  FakeVerbs fake({device});
  const Survey found = survey(fake.functions());
  const Device& opened = *found.devices.at(0);
  ASSERT_EQ(opened.port_count(), 2);
  const Port first_port = opened.port(1), second_port = opened.port(2);
  EXPECT_TRUE(first_port.active);
  EXPECT_TRUE(first_port.ethernet);
  EXPECT_EQ(first_port.mtu_bytes, 4096);
  ASSERT_EQ(first_port.gids.size(), 2u);
  EXPECT_EQ(first_port.gids[1].index, 5);
  EXPECT_EQ(first_port.gids[1].type, GidType::roce_v1);
  EXPECT_FALSE(second_port.active);
  EXPECT_EQ(second_port.state, "DOWN");
  EXPECT_FALSE(second_port.ethernet);
  EXPECT_EQ(second_port.lid, 9);
  EXPECT_EQ(second_port.mtu_bytes, 2048);
  ASSERT_EQ(second_port.gids.size(), 1u);
  EXPECT_EQ(second_port.gids[0].type, GidType::infiniband);
}

TEST(Device, HandlesAreClosed) {
  FakeVerbs fake({named("mlx5_0")});
  {
    const Survey found = survey(fake.functions());
    found.devices[0]->protection_domain();
    EXPECT_EQ(fake.open_objects.load(), 2u);
  }
  EXPECT_EQ(fake.open_objects.load(), 0u);
}

TEST(QueuePairs, InlineDataIsHalvedUntilTheDeviceTakesIt) {
  FakeDevice device = named("mlx5_0");
  device.max_inline_bytes = 60;
  FakeVerbs fake({device});
  const Survey found = survey(fake.functions());
  Device& opened = *found.devices[0];
  const CompletionQueue queue =
      own(opened.functions().create_cq(opened.context(), 16, nullptr, nullptr, 0),
          opened.functions().destroy_cq);
  EXPECT_EQ(QueuePair(opened, queue.get(), 16, 256).inline_bytes(), 32u);
  fake.queue_pair_error = ENOMEM;
  EXPECT_NE(expect_error(ExitCode::unavailable, {"QP", "mlx5_0", "Cannot allocate memory"},
                         [&] { QueuePair(opened, queue.get(), 16, 256); })
                .find("locked memory"),
            std::string::npos);
}

TEST(QueuePairs, MtuCodes) {
  EXPECT_EQ(mtu_code(256), IBV_MTU_256);
  EXPECT_EQ(mtu_code(512), IBV_MTU_512);
  EXPECT_EQ(mtu_code(1024), IBV_MTU_1024);
  EXPECT_EQ(mtu_code(2048), IBV_MTU_2048);
  EXPECT_EQ(mtu_code(4096), IBV_MTU_4096);
}

TEST(AsyncEvents, PortsThatGoDownAndUpAreRemembered) {
  FakeVerbs fake({named("mlx5_0")});
  const Survey found = survey(fake.functions());
  AsyncEvents events(*found.devices[0]);
  events.poll();
  EXPECT_EQ(events.history(1), "");
  fake.set_port_state("mlx5_0", 1, IBV_PORT_DOWN);
  events.poll();
  EXPECT_EQ(events.history(1), "the port went down once");
  fake.set_port_state("mlx5_0", 1, IBV_PORT_ACTIVE);
  fake.set_port_state("mlx5_0", 1, IBV_PORT_ACTIVE); // devices report the change twice
  events.poll();
  EXPECT_EQ(events.history(1), "the port went down once and is up again");
  fake.set_port_state("mlx5_0", 1, IBV_PORT_DOWN);
  events.poll();
  EXPECT_EQ(events.history(1), "the port went down 2 times");
}

TEST(AsyncEvents, AddressesThatChangeAndDevicesThatFailAreNamed) {
  FakeVerbs fake({named("mlx5_0")});
  const Survey found = survey(fake.functions());
  AsyncEvents events(*found.devices[0]);
  fake.tell("mlx5_0", IBV_EVENT_GID_CHANGE, 1);
  fake.tell("mlx5_0", IBV_EVENT_QP_ACCESS_ERR, 0);
  fake.tell("mlx5_0", IBV_EVENT_CQ_ERR, 0);
  testing::internal::CaptureStderr();
  events.poll();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("mlx5_0 reports that a peer used an address or key"), std::string::npos)
      << log;
  EXPECT_NE(log.find("a completion queue of mlx5_0 has overrun"), std::string::npos) << log;
  EXPECT_EQ(events.history(1), "the port's addresses changed once");
  EXPECT_EQ(events.history(2), "");
  fake.set_port_state("mlx5_0", 1, IBV_PORT_DOWN);
  events.poll();
  EXPECT_EQ(events.history(1), "the port went down once, its addresses changed once");
  fake.tell("mlx5_0", IBV_EVENT_DEVICE_FATAL, 0);
  events.poll();
  EXPECT_EQ(events.history(1), "the device reports a fatal error");
}

TEST(AsyncEvents, ThousandsOfQueuePairsReportOnce) {
  FakeVerbs fake({named("mlx5_0")});
  const Survey found = survey(fake.functions());
  AsyncEvents events(*found.devices[0]);
  for (int i = 0; i < 1000; ++i)
    fake.tell("mlx5_0", IBV_EVENT_QP_FATAL, 0);
  testing::internal::CaptureStderr();
  events.poll();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(DeviceShare, TheInnermostCgroupThatLimitsTheDevice) {
  const TemporaryFolder machine;
  const auto share = [&] { return cgroup_share("rxe0", Sysroot(machine.path())); };
  EXPECT_EQ(share(), "");
  machine.write("proc/self/cgroup", "0::/jobs/seven\n");
  EXPECT_EQ(share(), "");
  machine.write("sys/fs/cgroup/jobs/rdma.max", "rxe0 hca_handle=2 hca_object=20\n");
  machine.write("sys/fs/cgroup/jobs/rdma.current",
                "rxe1 hca_handle=0 hca_object=0\nrxe0 hca_handle=2 hca_object=6\n");
  machine.write("sys/fs/cgroup/jobs/seven/rdma.max",
                "rxe1 hca_handle=1 hca_object=1\nrxe0 hca_handle=max hca_object=max\n");
  EXPECT_EQ(share(),
            "rdma.max of /sys/fs/cgroup/jobs allows hca_handle=2 hca_object=20, in use are "
            "hca_handle=2 hca_object=6");
  machine.write("sys/fs/cgroup/jobs/seven/rdma.max", "rxe0 hca_handle=max hca_object=0");
  EXPECT_EQ(share(), "rdma.max of /sys/fs/cgroup/jobs/seven allows hca_handle=max hca_object=0");
}

TEST(DeviceShare, TheControllerOfVersion1) {
  const TemporaryFolder machine;
  machine.write("proc/self/cgroup", "12:memory:/a\n4:rdma:/slurm\n0::/\nodd\n::\n");
  machine.write("sys/fs/cgroup/rdma/slurm/rdma.max", "rxe0 hca_handle=1 hca_object=max\n");
  EXPECT_EQ(cgroup_share("rxe0", Sysroot(machine.path())),
            "rdma.max of /sys/fs/cgroup/rdma/slurm allows hca_handle=1 hca_object=max");
}

TEST(DeviceShare, TheHolderIsNamedIfItIsTheCause) {
  const TemporaryFolder machine;
  const Sysroot sysroot(machine.path());
  EXPECT_EQ(refusal("rxe0", EAGAIN, "wait", sysroot).fix, "wait");
  machine.write("proc/self/cgroup", "0::/\n"); // as a container sees its own
  machine.write("sys/fs/cgroup/rdma.max", "rxe0 hca_handle=2 hca_object=max\n");
  const Refusal limited = refusal("rxe0", EAGAIN, "wait", sysroot);
  EXPECT_NE(limited.message.find("rdma.max of /sys/fs/cgroup allows hca_handle=2"),
            std::string::npos)
      << limited.message;
  EXPECT_NE(limited.fix.find("raise rdma.max"), std::string::npos) << limited.fix;
  EXPECT_EQ(refusal("rxe0", EINVAL, "wait", sysroot).fix, "wait");
  const Refusal exhausted = refusal("rxe0", ENOSPC, "wait", sysroot);
  EXPECT_NE(exhausted.fix.find("rdma resource show"), std::string::npos) << exhausted.fix;
}

TEST(Status, EveryStatusSaysWhatItIsAndWhatToDo) {
  const FailureScene scene{"PE 3 on node2", "ACTIVE", 7.5, 4096};
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    const auto code = static_cast<ibv_wc_status>(status);
    EXPECT_FALSE(status_meaning(code, scene).empty()) << status;
    EXPECT_FALSE(status_fix(code, scene).empty()) << status;
  }
  EXPECT_EQ(status_meaning(IBV_WC_RETRY_EXC_ERR, scene), "PE 3 on node2 did not answer for 7.5 s");
  EXPECT_NE(status_fix(IBV_WC_RETRY_EXC_ERR, scene).find("4096"), std::string::npos);
  const FailureScene down{"PE 3 on node2", "DOWN", 7.5, 4096};
  EXPECT_EQ(status_meaning(IBV_WC_LOC_QP_OP_ERR, down), "the port is DOWN");
  EXPECT_NE(status_fix(IBV_WC_LOC_QP_OP_ERR, down).find("link up"), std::string::npos);
}

TEST(Status, HowLongAQueuePairTries) {
  EXPECT_NEAR(retry_seconds(14, 6), 0.47, 0.01);
  EXPECT_NEAR(retry_seconds(18, 6), 7.5, 0.1);
}

} // namespace
} // namespace shmemctl::verbs
