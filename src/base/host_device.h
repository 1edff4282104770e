// For code that host and device run alike.
#pragma once

#if defined(__CUDACC__)
#define SHMEMCTL_HOST_DEVICE __host__ __device__
#else
#define SHMEMCTL_HOST_DEVICE
#endif
