// Events that NVML reports, and their texts.
#include "src/model/topo/readers/nvml_events.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include "tests/support/set_variable.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

using Kind = NvmlEvent::Kind;

class NvmlEventsTest : public ::testing::Test {
protected:
  static constexpr const char* address = "0000:1a:00.0";
  void write(const std::string& lines) {
    folder_.write("nvml.txt", "gpu 0 00000000:1A:00.0 GPU-0 Fake GPU\n" + lines);
  }
  std::unique_ptr<NvmlEvents> listen(const std::string& lines,
                                     const std::string& library = SHMEMCTL_FAKE_NVML,
                                     const std::string& gpu = address) {
    write(lines);
    why_.clear();
    return NvmlEvents::listen(library, gpu, why_);
  }
  static int sets() {
    void* const library = ::dlopen(SHMEMCTL_FAKE_NVML, RTLD_NOW);
    const auto count = reinterpret_cast<int (*)()>(::dlsym(library, "fake_nvml_event_sets"))();
    ::dlclose(library);
    return count;
  }

  TemporaryFolder folder_;
  test::SetVariable config_{"FAKE_NVML_CONFIG", folder_.path() + "/nvml.txt"};
  std::string why_;
};

TEST_F(NvmlEventsTest, NothingHasCome) {
  const auto events = listen("");
  ASSERT_TRUE(events) << why_;
  EXPECT_TRUE(events->seen(0).empty());
  EXPECT_EQ(describe_events(events->seen(0), address), "");
  EXPECT_EQ(fix_of(events->seen(0)), "");
}

TEST_F(NvmlEventsTest, WhatComesIsKeptOnceAndInOrder) {
  const auto events = listen("event 8 31\nevent 8 43\nevent 8 31\n");
  ASSERT_TRUE(events) << why_;
  const std::vector<NvmlEvent> both = {{Kind::xid, 31}, {Kind::xid, 43}};
  EXPECT_EQ(events->seen(0), both);
  EXPECT_EQ(events->seen(0), both);
  write("event 8 31\nevent 8 43\nevent 8 31\nevent 8 79\n");
  const std::vector<NvmlEvent> all = {{Kind::xid, 31}, {Kind::xid, 43}, {Kind::xid, 79}};
  EXPECT_EQ(events->seen(0), all);
  EXPECT_EQ(describe_events(all, address),
            "the driver reported Xid 31 (an MMU fault: access to unmapped memory), Xid 43 (a "
            "channel was stopped after an application fault), Xid 79 "
            "(the GPU has fallen off the bus) on GPU 0000:1a:00.0 since the job's start");
  EXPECT_NE(fix_of(all).find("reboot the node"), std::string::npos);
}

TEST_F(NvmlEventsTest, AnEventThatIsLateIsWaitedFor) {
  const auto events = listen("event 8 13 50\n");
  ASSERT_TRUE(events) << why_;
  EXPECT_TRUE(events->seen(0).empty());
  EXPECT_EQ(events->seen(100).size(), 1U);
}

TEST_F(NvmlEventsTest, EccErrorsHaveNoNumber) {
  const auto events = listen("event-types 11\nevent 1 0\nevent 2 0\nevent 8 48\n");
  ASSERT_TRUE(events) << why_;
  EXPECT_EQ(describe_events(events->seen(0), address),
            "the driver reported a corrected ECC error, an uncorrectable ECC error, Xid 48 (an "
            "uncorrectable ECC error (two bits)) on GPU 0000:1a:00.0 since the job's start");
  EXPECT_NE(fix_of(events->seen(0)).find("ROW_REMAPPER"), std::string::npos);
  EXPECT_EQ(fix_of({{Kind::corrected_ecc, 0}}), "");
}

/// NVML registers nothing if one type is not supported, so only supported types may be requested.
TEST_F(NvmlEventsTest, OnlyWhatTheGpuSupportsIsRegistered) {
  EXPECT_TRUE(listen("event-types 8\n")) << why_;
  EXPECT_TRUE(listen("event-types 3\n")) << why_;
  EXPECT_FALSE(listen("event-types 4\n"));
  EXPECT_EQ(why_, "nvmlDeviceGetSupportedEventTypes: neither Xids nor ECC errors");
}

TEST_F(NvmlEventsTest, AGpuThatIsLostIsSaid) {
  const auto events = listen("fail nvmlEventSetWait_v2 15\n");
  ASSERT_TRUE(events) << why_;
  EXPECT_EQ(describe_events(events->seen(0), address),
            "the driver reported its loss on GPU 0000:1a:00.0 since the job's start");
  EXPECT_NE(fix_of(events->seen(0)).find("reboot the node"), std::string::npos);
}

TEST_F(NvmlEventsTest, WhatCannotListenSaysWhyAndLeavesNothing) {
  EXPECT_FALSE(listen("", "libshmemctl-none.so.1"));
  EXPECT_NE(why_.find("libshmemctl-none.so.1"), std::string::npos);
  EXPECT_FALSE(listen("", SHMEMCTL_FAKE_NVML, "0000:77:00.0"));
  EXPECT_EQ(why_, "nvmlDeviceGetHandleByPciBusId_v2: Not Found");
  EXPECT_FALSE(listen("fail nvmlDeviceGetSupportedEventTypes 3\n"));
  EXPECT_EQ(why_, "nvmlDeviceGetSupportedEventTypes: Not Supported");
  EXPECT_FALSE(listen("fail nvmlEventSetCreate 999\n"));
  EXPECT_EQ(why_, "nvmlEventSetCreate: Unknown Error");
  EXPECT_FALSE(listen("fail nvmlDeviceRegisterEvents 4\n"));
  EXPECT_EQ(why_, "nvmlDeviceRegisterEvents: Insufficient Permissions");
  EXPECT_FALSE(listen("", SHMEMCTL_FAKE_NVML_WITHOUT_EVENTS));
  EXPECT_EQ(why_, "nvmlDeviceGetSupportedEventTypes: this driver's NVML does not have it");
  EXPECT_EQ(sets(), 0);
}

/// A failed query is not an event.
TEST_F(NvmlEventsTest, AWaitThatFailsIsNothing) {
  const auto events = listen("event 8 31\nfail nvmlEventSetWait_v2 999\n");
  ASSERT_TRUE(events) << why_;
  EXPECT_TRUE(events->seen(0).empty());
}

TEST_F(NvmlEventsTest, ManyAreCounted) {
  std::vector<NvmlEvent> many;
  for (std::uint64_t xid = 1000; xid < 1007; ++xid)
    many.push_back({Kind::xid, xid});
  EXPECT_EQ(describe_events(many, address),
            "the driver reported Xid 1000, Xid 1001, Xid 1002, Xid 1003 "
            "and 3 more on GPU 0000:1a:00.0 since the job's start");
  EXPECT_EQ(fix_of(many), "");
}

/// An endless series of events is not read for ever.
TEST_F(NvmlEventsTest, AStormEnds) {
  std::string lines;
  for (int i = 0; i < 1000; ++i)
    lines += "event 8 " + std::to_string(i % 100) + "\n";
  const auto events = listen(lines);
  ASSERT_TRUE(events) << why_;
  EXPECT_EQ(events->seen(0).size(), 100U);
}

TEST(Xid, WellKnownNumbersHaveWordsAndThoseOfHardwareAFix) {
  for (const std::uint64_t xid : {13, 31, 43, 45, 48, 61, 62, 63, 64, 74, 79, 94, 95, 119, 120})
    ASSERT_NE(meaning_of_xid(xid), nullptr) << xid;
  for (const std::uint64_t xid : {13, 31, 43, 45, 137})
    EXPECT_EQ(meaning_of_xid(xid)->fix, nullptr) << xid;
  for (const std::uint64_t xid : {48, 62, 64, 74, 79, 95, 119})
    EXPECT_NE(meaning_of_xid(xid)->fix, nullptr) << xid;
  EXPECT_EQ(meaning_of_xid(0), nullptr);
  EXPECT_EQ(meaning_of_xid(9999), nullptr);
}

} // namespace
} // namespace shmemctl
