// Macros that declare the launchers of measuring kernels. The launchers choose between the two
// builds of a kernel (kernels/build_variants.h), and fail in a binary without CUDA. A launcher is
// declared once, next to its arguments, and defined in one file, which nvcc compiles twice.
#pragma once

#include <string>

#include "kernels/bench/kernel_launch.h"
#include "kernels/build_variants.h"

/// Declares, in both builds, a launcher that only other launchers call: std::string name(how,
/// arguments).
#define SHMEMCTL_INNER_LAUNCHER(name, Arguments)                                                   \
  namespace mapped {                                                                               \
  std::string name(const KernelLaunch& how, const Arguments& arguments);                           \
  }                                                                                                \
  namespace with_network {                                                                         \
  std::string name(const KernelLaunch& how, const Arguments& arguments);                           \
  }

/// Declares, in both builds, a function that returns how many blocks of a launcher's kernel run at
/// once, and that only other launchers call: int name Parameters.
/// @param Parameters with parentheses
#define SHMEMCTL_INNER_MAX_BLOCKS(name, Parameters)                                                \
  namespace mapped {                                                                               \
  int name Parameters;                                                                             \
  }                                                                                                \
  namespace with_network {                                                                         \
  int name Parameters;                                                                             \
  }

#ifdef __CUDACC__

#define SHMEMCTL_LAUNCHER(name, Arguments) SHMEMCTL_INNER_LAUNCHER(name, Arguments)
#define SHMEMCTL_MAX_BLOCKS(name, Parameters, values) SHMEMCTL_INNER_MAX_BLOCKS(name, Parameters)

#else

#include "build_info.h"

/// Declares a launcher in both builds, and a function of the same name for the host, which calls
/// that of the `mapped` build if it suffices for the job, else the other one.
#define SHMEMCTL_LAUNCHER(name, Arguments)                                                         \
  SHMEMCTL_INNER_LAUNCHER(name, Arguments)                                                         \
  inline std::string name(const KernelLaunch& how, const Arguments& arguments) {                   \
    if constexpr (SHMEMCTL_HAVE_CUDA == 0)                                                         \
      return "this binary was built without CUDA";                                                 \
    else if (all_mapped(how.job))                                                                  \
      return mapped::name(how, arguments);                                                         \
    else                                                                                           \
      return with_network::name(how, arguments);                                                   \
  }

/// Declares the function that returns how many blocks run at once, for the host as well. The host
/// calls it before there is a job, so its result is that of the build that needs more resources,
/// `with_network`. Without CUDA it returns 0 (unknown).
/// @param values the names of the parameters, with parentheses
#define SHMEMCTL_MAX_BLOCKS(name, Parameters, values)                                              \
  SHMEMCTL_INNER_MAX_BLOCKS(name, Parameters)                                                      \
  inline int name Parameters {                                                                     \
    if constexpr (SHMEMCTL_HAVE_CUDA == 0)                                                         \
      return 0;                                                                                    \
    else                                                                                           \
      return with_network::name values;                                                            \
  }

#endif
