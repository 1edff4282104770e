// The CUDA driver: initialised, its errors as Error, its devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/cuda/functions.h"

namespace shmemctl::cuda {

/// The capabilities of a device that the runtime uses in its decisions.
struct DeviceInfo {
  int ordinal = 0;                     ///< CUDA's number, under CUDA_VISIBLE_DEVICES
  std::string name, pci_address, uuid; ///< "0000:1b:00.0", "GPU-0123…": as nvidia-smi prints it
  int compute_major = 0, compute_minor = 0, multiprocessors = 0;
  std::size_t total_bytes = 0;
  /// What its own memory moves at most, reads and writes together, by the memory's clock and width;
  /// 0: the driver does not tell.
  double memory_GBps = 0;
  bool virtual_memory = false;  ///< cuMemCreate and cuMemMap
  bool descriptors = false;     ///< memory can be handed on as a POSIX file descriptor
  bool fabric_handles = false;  ///< or as a handle that reaches other nodes of an NVLink domain
  bool rdma_of_virtual = false; ///< NICs may reach memory of cuMemCreate
  bool dma_buf = false;         ///< memory can be handed to NICs as a dma-buf
  bool host_atomics = false;    ///< native ones of its kernels on host memory
  /// Scope in which a NIC's writes are ordered without a flush (CUGPUDirectRDMAWritesOrdering): 0
  /// none, 100 this device, 200 all devices.
  int rdma_order = 0;
  bool rdma_flush = false; ///< cuFlushGPUDirectRDMAWrites
  bool cooperative_launch = false;
  bool stream_operations = false;  ///< 64-bit wait and write operations in streams
  bool unified_addressing = false; ///< registered host memory has one address everywhere
};

/// What else the driver driver_report of a device, for an error's two lines; "" for nothing.
struct DriverReport {
  std::string words; ///< "the driver reported Xid 31 (...) on GPU 0000:1b:00.0 ..."
  std::string fix;   ///< if it is more specific than the fix for CUDA's error code
};

/// Thread safe.
class Driver {
public:
  /// Opens libcuda and calls cuInit, once for each object.
  /// @param why receives the reason if there is no driver or no device: one clause
  /// Returns nullptr then.
  static std::shared_ptr<const Driver> open(const std::string& library_file, std::string& why);
  /// The same over a table that is there.
  static std::shared_ptr<const Driver> start(std::shared_ptr<const Functions> functions,
                                             std::string& why);

  const Functions& call() const { return *functions_; }
  int version() const { return version_; } ///< 13000 is CUDA 13.0
  /// The visible devices, in CUDA's order.
  const std::vector<DeviceInfo>& devices() const { return devices_; }

  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string text_of(CUresult result) const;
  /// Throws Error (unavailable) unless the result is a success, with the driver's error text and a
  /// fix for that kind of failure.
  /// @param subject   what is concerned: "GPU 3", "64M of GPU memory"
  /// @param attempted the step: "map"
  /// @param where     what is known of the location beside the subject
  void require(CUresult result, const std::string& subject, const std::string& attempted,
               Where where = {}) const;
  /// The Error that require() throws.
  Error error_of(CUresult result, const std::string& subject, const std::string& attempted,
                 Where where, const DriverReport& driver_report = {}) const;
  /// Whether the device, or what ran on it, may have failed: not what the caller did wrong, nor
  /// memory that is not there.
  static bool is_of_device(CUresult result);

private:
  explicit Driver(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}
  DeviceInfo describe(int ordinal) const;

  std::shared_ptr<const Functions> functions_;
  int version_ = 0;
  std::vector<DeviceInfo> devices_;
};

} // namespace shmemctl::cuda
