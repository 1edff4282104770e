// NVML's binary interface, as far as we call it: numbers and layouts of its public ABI (CUDA 13.0;
// each unchanged since the first release of its function).
#pragma once

#include <cstdint>

namespace shmemctl::nvml_abi {

using Device = void*;

// nvmlReturn_t
inline constexpr int success = 0, invalid_argument = 2, not_supported = 3, not_found = 6,
                     insufficient_size = 7, gpu_is_lost = 15;

/// nvmlPciInfo_t, version 3.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

/// nvmlFieldValue_t; `value` is a union of numbers of up to eight bytes.
struct FieldValue {
  unsigned field_id = 0;
  unsigned scope_id = 0;
  long long timestamp = 0, latency_us = 0;
  int value_type = 0;
  int result = 0;
  union {
    double number;
    unsigned unsigned_32;
    unsigned long long unsigned_64;
  } value = {};
};
static_assert(sizeof(FieldValue) == 40);
// nvmlValueType_t
inline constexpr int value_is_double = 0, value_is_unsigned = 1, value_is_unsigned_long = 2,
                     value_is_unsigned_long_long = 3;
// Field identifiers.
inline constexpr unsigned field_nvlink_speed_common_MBps = 90, field_nvlink_count = 91,
                          field_nvlink_speed_MBps = 164, field_c2c_link_count = 170,
                          field_c2c_link_status = 171, field_c2c_link_bandwidth_MBps = 172;
// Payload of NVLinks since some moment, in KiB; the scope is a link's number, or all of them: NVML
// API reference, "Field Value Enums", NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX and _DATA_RX.
inline constexpr unsigned field_nvlink_sent_KiB = 138, field_nvlink_received_KiB = 139,
                          scope_all_nvlinks = 0xffffffff;

/// nvmlGpuFabricInfo_t.
struct FabricInfo {
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique_id;
  unsigned char state;
};
static_assert(sizeof(FabricInfo) == 28);

/// nvmlEventData_t, as nvmlEventSetWait_v2 fills it.
struct EventData {
  Device device = nullptr;
  unsigned long long type = 0;
  unsigned long long data = 0; ///< for an Xid: its number
  unsigned gpu_instance = 0, compute_instance = 0;
};
static_assert(sizeof(EventData) == 32);
// nvmlEventType...
inline constexpr unsigned long long event_corrected_ecc = 1, event_uncorrected_ecc = 2,
                                    event_xid = 8;

/// nvmlProcessInfo_t, of nvmlDeviceGetComputeRunningProcesses_v2 and _v3.
struct ProcessInfo {
  unsigned pid = 0;
  unsigned long long used_bytes = 0; ///< used bytes of the GPU's memory, or value_not_available
  unsigned gpu_instance = 0, compute_instance = 0;
};
static_assert(sizeof(ProcessInfo) == 24);
inline constexpr unsigned long long value_not_available = ~0ULL;

/// nvmlProcessUtilizationSample_t.
struct UtilizationSample {
  unsigned pid = 0;
  unsigned long long timestamp_us = 0;
  unsigned sm_percent = 0, memory_percent = 0, encoder_percent = 0, decoder_percent = 0;
};
static_assert(sizeof(UtilizationSample) == 32);

// nvmlIntNvLinkDeviceType_t
inline constexpr int remote_is_gpu = 0, remote_is_ibm_npu = 1, remote_is_switch = 2;
/// No GPU has more; the enumeration ends at the first link that NVML refuses as an invalid
/// argument.
inline constexpr unsigned max_nvlinks = 64;
// nvmlMemoryErrorType_t, nvmlEccCounterType_t, nvmlAffinityScope_t
inline constexpr int uncorrected_error = 1, volatile_counter = 0, scope_node = 0;
// nvmlClockType_t
inline constexpr int clock_of_sm = 1, clock_of_memory = 2;

} // namespace shmemctl::nvml_abi
