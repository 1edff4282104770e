# Toolchain of the portable build (preset `portable`): the compiler of this machine, headers and
# libraries of the sysroot that scripts/sysroot.sh makes. The binary then starts wherever glibc is at
# least as new as the sysroot's stubs say (2.28), and needs no other library.
#   SHMEMCTL_SYSROOT (a variable of CMake or of the environment): default build-sysroot in the checkout
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SHMEMCTL_SYSROOT)
if(NOT SHMEMCTL_SYSROOT)
  set(SHMEMCTL_SYSROOT "$ENV{SHMEMCTL_SYSROOT}")
endif()
if(NOT SHMEMCTL_SYSROOT)
  get_filename_component(SHMEMCTL_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-sysroot ABSOLUTE)
endif()
if(NOT EXISTS ${SHMEMCTL_SYSROOT}/sysroot.sums)
  message(FATAL_ERROR "${SHMEMCTL_SYSROOT} is no sysroot: run scripts/sysroot.sh ${SHMEMCTL_SYSROOT}")
endif()
set(SHMEMCTL_SYSROOT "${SHMEMCTL_SYSROOT}" CACHE PATH "Sysroot of the portable build")
set(SHMEMCTL_PORTABLE ON)
set(CMAKE_SYSROOT ${SHMEMCTL_SYSROOT})

# Debian's GCC looks for libraries and start files beside itself first, whatever the sysroot is. CMake
# gives the sysroot to GCC, but not where it compiles and links CUDA.
set(first -B${SHMEMCTL_SYSROOT}/usr/lib/x86_64-linux-gnu)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "--sysroot=${SHMEMCTL_SYSROOT} ${first}")
endforeach()
set(CMAKE_CUDA_FLAGS_INIT "-Xcompiler=--sysroot=${SHMEMCTL_SYSROOT},${first}")

# Nothing of this machine but its programs and its CUDA toolkit.
set(CMAKE_FIND_ROOT_PATH ${SHMEMCTL_SYSROOT})
if(EXISTS /usr/local/cuda)
  get_filename_component(toolkit /usr/local/cuda REALPATH)
  list(APPEND CMAKE_FIND_ROOT_PATH /usr/local/cuda ${toolkit})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
