// The state of the job and of this PE's NICs that all components of an ibrc transport share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/error.h"
#include "transports/rc/job.h"
#include "transports/verbs/async_events.h"
#include "transports/verbs/device.h"
#include "transports/verbs/shared_receives.h"

namespace shmemctl::ibrc {

/// A device of which one or more ports are used.
struct UsedDevice {
  std::unique_ptr<verbs::Device> device;
  std::unique_ptr<verbs::AsyncEvents> events;
  /// Receives messages; nullptr unless CPUs execute atomics.
  std::unique_ptr<verbs::SharedReceives> receives;
  verbs::ReceiveTarget receive_target() const {
    return receives ? receives->place() : verbs::ReceiveTarget{};
  }
};

/// A port of this PE, with its traffic.
struct Nic {
  std::size_t device_index = 0; ///< in JobView::devices
  verbs::Port port;
  std::vector<verbs::GidEntry> addresses; ///< candidates, best first
  std::atomic<std::uint64_t> put_bytes{0}, get_bytes{0}, operations{0};
  std::atomic<std::uint64_t> long_bytes{0}, long_ns{0}; ///< see ThroughputMeter
};

struct JobView : rc::Job {
  using rc::Job::Job;
  using rc::Job::where;

  std::vector<UsedDevice> devices;
  std::vector<std::unique_ptr<Nic>> nics; ///< best first

  verbs::Device& device_of(const Nic& nic) const { return *devices[nic.device_index].device; }
  /// This PE and port, for error messages.
  Where where(const Nic& nic) const { return where(device_of(nic).name(), nic.port.number); }
};

} // namespace shmemctl::ibrc
