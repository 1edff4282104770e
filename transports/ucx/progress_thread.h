// A thread that progresses the workers while no other thread does, since a target must execute
// UCX's emulated operations even if its program makes no calls.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/file_descriptor.h"
#include "transports/ucx/worker.h"

namespace shmemctl {

/// Sleeps until a worker has events. While another thread progresses a worker, this thread only
/// checks every millisecond whether that is still so.
class UcxProgressThread {
public:
  UcxProgressThread();
  UcxProgressThread(const UcxProgressThread&) = delete;
  UcxProgressThread& operator=(const UcxProgressThread&) = delete;
  ~UcxProgressThread();

  /// The worker must outlive this object.
  void add(UcxWorker& worker);

private:
  struct Watched {
    UcxWorker* worker;
    unsigned driven;
  };
  void run();
  /// Progresses a worker. Returns false if there may be more to do at once; true if the worker is
  /// armed.
  static bool serve(UcxWorker& worker);
  void wake();

  FileDescriptor wakeup_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<UcxWorker*> added_;
  std::thread thread_;
};

} // namespace shmemctl
