// Launchers of measuring kernels: which of the two builds of a kernel is launched
// (kernels/build_variants.h), and what a binary without CUDA has instead. A launcher is declared
// once, next to its arguments, and defined in one file, which nvcc compiles twice.
#pragma once

#include <string>

#include "kernels/bench/kernel_launch.h"
#include "kernels/build_variants.h"

/// Declares a launcher in both builds, for other launchers: std::string name(how, arguments).
#define SHMEMCTL_INNER_LAUNCHER(name, Arguments)                                                   \
  namespace mapped {                                                                               \
  std::string name(const KernelLaunch& how, const Arguments& arguments);                           \
  }                                                                                                \
  namespace with_network {                                                                         \
  std::string name(const KernelLaunch& how, const Arguments& arguments);                           \
  }

/// Declares in both builds how many blocks of a launcher's kernel run at once, for other launchers.
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

/// Declares a launcher in both builds, and the one that the host calls, which launches the build
/// that suffices for the job.
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

/// Declares how many blocks run at once, for the host too: of the build that needs more, because it
/// is asked before there is a job. Without CUDA: 0, unknown.
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
