// In place of DeepEP's header of this name, which deepep_v1/ibgda_device.cuh includes.
#pragma once

#include <device_host/nvshmem_common.cuh>
#include <device_host_transport/nvshmem_common_ibgda.h>
#include <non_abi/device/threadgroup/nvshmemi_common_device_defines.cuh>
