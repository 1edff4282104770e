// Failures: which PE or device is named, the text, and that no wait is endless.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/expect_error.h"
#include "tests/unit/transports/ibrc/fake_world.h"
#include "transports/ibrc/ibrc.h"
#include "transports/ibrc/wire.h"

namespace shmemctl::test {
namespace {

/// The next request of PE 0 ends with this status; before that, nothing fails.
class Failing {
public:
  explicit Failing(FakeVerbs& fake) {
    fake.fault = [this](const FakeRequest&) {
      const int status = status_.exchange(IBV_WC_SUCCESS);
      return status == IBV_WC_SUCCESS ? std::nullopt
                                      : std::optional(static_cast<ibv_wc_status>(status));
    };
  }
  void next(ibv_wc_status status) { status_ = status; }

private:
  std::atomic<int> status_{IBV_WC_SUCCESS};
};

void put_and_wait(TransportPe& me, int to = 1) {
  me.transport->put(0, heap_at(to, 0), me.heap + 4096, 65536, false);
  me.transport->quiet(0);
}

TEST(Faults, AnUnresponsivePeerIsNamed) {
  FakeVerbs fake({roce_device("fake0")});
  Failing failing(fake);
  run_over(fake, [&](TransportPe& me) {
    if (me.pe == 0) {
      failing.next(IBV_WC_RETRY_EXC_ERR);
      const std::string message =
          expect_error(ExitCode::unavailable,
                       {"PE 1 on host1 (host host0", "cannot put 65536 bytes", "host host0", "PE 0",
                        "device fake0", "port 1", "transport retry counter exceeded",
                        "did not answer for 7.5 s"},
                       [&] { put_and_wait(me); });
      EXPECT_NE(message.find("IB_TIMEOUT"), std::string::npos) << message;
    }
    me.barrier();
  });
}

void use_a_wrong_key(TransportPe& me) {
  if (me.pe == 0) {
    const rc::SegmentKey wrong{0, me.heap_bytes, 0x1000, {4711}};
    me.transport->set_keys(region::heap, {to_bytes(wrong), to_bytes(wrong)});
    expect_error(ExitCode::unavailable,
                 {"PE 1 on host1 (host host0", "cannot put 65536 bytes", "port 1",
                  "remote access error", "refuses the address"},
                 [&] { put_and_wait(me); });
  }
  me.barrier();
}

TEST(Faults, AWrongKeyIsARemoteAccessError) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, use_a_wrong_key);
}

TEST(FaultsOfDevices, AWrongKeyIsARemoteAccessError) {
  const std::string reason = run_transport_world(
      [](const TransportSetup& setup) { return make_ibrc_transport(setup); }, use_a_wrong_key);
  if (!reason.empty())
    GTEST_SKIP() << reason;
}

TEST(Faults, WhatFollowsAFailureSaysTheSame) {
  FakeVerbs fake({roce_device("fake0")});
  Failing failing(fake);
  TransportWorldOptions three;
  three.n_pes = 3;
  run_over(
      fake,
      [&](TransportPe& me) {
        if (me.pe == 0) {
          failing.next(IBV_WC_REM_OP_ERR);
          for (int i = 0; i < 3; ++i)
            expect_error(ExitCode::unavailable, {"PE 1 on host1", "cannot put 65536 bytes"},
                         [&] { put_and_wait(me); });
          expect_error(ExitCode::unavailable, {"PE 1"}, [&] {
            me.transport->atomic(0, heap_at(1, 0), {AtomicOp::add, 8, 1});
          });
          // Another peer, or another qp_set, is not concerned.
          EXPECT_EQ(me.transport->atomic(0, heap_at(2, 0), {AtomicOp::add, 8, 1}), 0u);
          EXPECT_EQ(me.transport->atomic(1, heap_at(1, 0), {AtomicOp::add, 8, 1}), 0u);
          me.transport->quiet(1);
          // A quiet that has lost an operation never reports success.
          expect_error(ExitCode::unavailable, {"PE 1"}, [&] { me.transport->quiet(0); });
        }
        me.barrier();
      },
      three);
}

/// Hundreds of requests were in flight when the connection broke.
TEST(Faults, AFailureInAStreamIsReportedOnceAndLeavesNothing) {
  FakeVerbs fake({roce_device("fake0")});
  Failing failing(fake);
  run_over(fake, [&](TransportPe& me) {
    if (me.pe == 0) {
      std::vector<std::byte> plain(1 << 20); // staged transfers, so that slots must be returned
      expect_error(ExitCode::unavailable, {"PE 1"}, [&] {
        for (int i = 0; i < 100; ++i) {
          if (i == 50)
            failing.next(IBV_WC_RETRY_EXC_ERR);
          me.transport->put(0, heap_at(1, 0), plain.data(), plain.size(), false);
          me.transport->put(0, heap_at(1, 0), plain.data(), 8, false);
        }
        me.transport->quiet(0);
      });
      // The pool is intact: another peer's transfers still find slots.
      for (int i = 0; i < 10; ++i)
        me.transport->put(0, heap_at(0, 0), plain.data(), plain.size(), true);
      expect_error(ExitCode::unavailable, {"PE 1"}, [&] { me.transport->quiet(0); });
    }
    me.barrier();
  });
}

TEST(Faults, APortThatIsDownIsTheCause) {
  FakeVerbs fake({roce_device("fake0")});
  Failing failing(fake);
  run_over(fake, [&](TransportPe& me) {
    if (me.pe == 0) {
      fake.set_port_state("fake0", 1, IBV_PORT_DOWN);
      failing.next(IBV_WC_LOC_QP_OP_ERR);
      const std::string message = expect_error(
          ExitCode::unavailable, {"fake0", "the port is DOWN", "the port went down once"},
          [&] { put_and_wait(me); });
      EXPECT_NE(message.find("bring the link up"), std::string::npos) << message;
    }
    me.barrier();
  });
}

TEST(Faults, AWaitForASilentDeviceTimesOut) {
  FakeVerbs fake({roce_device("fake0")});
  const auto quick = [&](TransportSetup setup) {
    setup.timeout_s = 0.3;
    return make_over(fake, setup);
  };
  run_transport_world(quick, [&](TransportPe& me) {
    if (me.pe == 0) {
      fake.silent = true;
      expect_error(ExitCode::deadline, {"quiet", "PE 1"}, [&] { put_and_wait(me); });
      expect_error(ExitCode::deadline, {"an atomic operation", "PE 1"}, [&] {
        me.transport->atomic(1, heap_at(1, 0), {AtomicOp::add, 8, 1});
      });
      fake.silent = false;
    }
    me.barrier();
  });
}

TEST(Faults, TheJobsFailureEndsTheWait) {
  FakeVerbs fake({roce_device("fake0")});
  /// PE 1 fails while PE 0 waits for a device that does not answer.
  const auto world = [&] {
    run_transport_world([&](const TransportSetup& setup) { return make_over(fake, setup); },
                        [&](TransportPe& me) {
                          if (me.pe == 1) {
                            while (!fake.silent)
                              std::this_thread::yield();
                            throw Error(ExitCode::unavailable, "PE 1", "go on", "invented", "x");
                          }
                          fake.silent = true;
                          expect_error(ExitCode::unavailable, {"another PE failed"},
                                       [&] { put_and_wait(me); });
                        },
                        {});
  };
  expect_error(ExitCode::unavailable, {"invented"}, world);
  fake.silent = false;
}

TEST(Faults, ACqThatCannotBePolledIsAnError) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    if (me.pe == 0) {
      fake.poll_error = -1;
      expect_error(ExitCode::unavailable,
                   {"CQ", "cannot read completions", "ibv_poll_cq returned -1", "host host0",
                    "PE 0", "device fake0"},
                   [&] { put_and_wait(me); });
      fake.poll_error = 0;
    }
    me.barrier();
  });
}

TEST(Faults, ARequestThatTheDeviceRefuses) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    if (me.pe == 0)
      expect_error(ExitCode::unavailable,
                   {"PE 1 on host1", "cannot send a signal", "fake0",
                    "rejected the request: Invalid argument"},
                   [&] {
                     me.transport->put_signal(0, heap_at(1, 0), nullptr, 0, heap_at(1, 3), 1,
                                              SignalOp::add, true);
                   });
    me.barrier();
  });
}

/// Whether the device refuses a request or an earlier failure does, its staging slots are free
/// again: there are 64 of them for all peers.
TEST(Faults, RefusedRequestsLeaveTheirStagingSlots) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    if (me.pe == 0) {
      const std::vector<std::byte> unregistered(20000);
      for (int i = 0; i < 100; ++i)
        expect_error(ExitCode::unavailable, {"PE 1 on host1", "rejected the request"}, [&] {
          me.transport->put_signal(0, heap_at(1, 0), unregistered.data(), unregistered.size(),
                                   heap_at(1, 3), 1, SignalOp::add, true);
        });
      me.transport->put(0, heap_at(0, 0), unregistered.data(), unregistered.size(), true);
    }
    me.barrier();
  });
}

/// Earlier requests in flight without a completion do not delay the next quiet.
TEST(Faults, AQuietAfterARefusedRequest) {
  for (int puts = 1; puts <= 20; ++puts) { // one of some asks for a completion
    FakeVerbs fake({roce_device("fake0")});
    run_over(fake, [&](TransportPe& me) {
      if (me.pe == 0) {
        const std::uint64_t value = 7;
        for (int i = 0; i < puts; ++i)
          me.transport->put(0, heap_at(1, 64), &value, sizeof value, false);
        expect_error(ExitCode::unavailable, {"rejected the request"}, [&] {
          me.transport->put_signal(0, heap_at(1, 0), nullptr, 0, heap_at(1, 3), 1, SignalOp::add,
                                   true);
        });
        expect_error(ExitCode::unavailable, {"rejected the request"},
                     [&] { me.transport->quiet(0); });
      }
      me.barrier();
    });
  }
}

TEST(Faults, UnregisteredMemory) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    expect_error(ExitCode::unavailable, {"region 1", "not registered by PE 1 on host1"},
                 [&] { me.transport->put(0, heap_at(1, me.heap_bytes), me.heap, 8, true); });
    expect_error(ExitCode::unavailable, {"region 5"}, [&] {
      me.transport->get(0, me.heap, {1, 5, 0}, 8, true);
    });
    me.barrier();
  });
}

TEST(Faults, AKeyThatIsDamaged) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    expect_error(ExitCode::unavailable, {"PE 0", "cannot read its rkeys"}, [&] {
      me.transport->set_keys(region::heap, {"nonsense", ""});
    });
    // For fewer NICs than are connected.
    const rc::SegmentKey none{0, 4096, 0x1000, {}};
    expect_error(ExitCode::unavailable, {"PE 0", "cannot read its rkeys"}, [&] {
      me.transport->set_keys(region::heap, {to_bytes(none), to_bytes(none)});
    });
    me.barrier();
  });
}

TEST(Faults, TooLittleLockedMemoryForTheHeap) {
  FakeVerbs fake({roce_device("fake0")});
  run_over(fake, [&](TransportPe& me) {
    me.barrier();
    if (me.pe == 0) {
      fake.register_error = ENOMEM;
      std::vector<std::byte> memory(100000);
      expect_error(ExitCode::unavailable,
                   {"a buffer", "host host0", "PE 0", "fake0", "Cannot allocate memory"},
                   [&] { me.transport->add_local(memory.data(), memory.size()); });
      fake.register_error = 0;
    }
    me.barrier();
  });
}

/// Another process has exclusive use of the device.
TEST(Faults, ADeviceWithoutQueuePairsIsNamedWithItsPlace) {
  FakeVerbs fake({roce_device("fake0")});
  fake.queue_pair_error = ENOMEM;
  const std::string reason = expect_error(
      ExitCode::unavailable,
      {"QP (", "cannot create", "host host", "PE ", "device fake0", "Cannot allocate memory"},
      [&] { run_over(fake, [](TransportPe&) {}); });
  EXPECT_NE(reason.find("rdma resource show"), std::string::npos) << reason;
}

} // namespace
} // namespace shmemctl::test
