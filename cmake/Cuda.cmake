# CUDA is found or left out: SHMEMCTL_CUDA=AUTO|ON|OFF. Without it, everything that needs no GPU
# works. The CUDA runtime is linked statically; the driver is opened at run time.
set(SHMEMCTL_CUDA_VERSION "none")
set(SHMEMCTL_HAVE_CUDA 0)
# Accesses of 16 bytes (.b128, PTX 8.3: kernels/device/memory_order.cuh) and fabric handles.
set(SHMEMCTL_OLDEST_CUDA 12.3)

# Sets `problem` to why this compiler cannot be used; "" if nothing is known against it. Before CMake
# tries it: an old one fails there for reasons that say less (architectures).
function(shmemctl_cuda_problem compiler problem)
  set(${problem} "" PARENT_SCOPE)
  execute_process(COMMAND ${compiler} --version OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT said MATCHES "release ([0-9]+\\.[0-9]+)")
    return() # none, or another one than nvcc
  endif()
  if(CMAKE_MATCH_1 VERSION_LESS SHMEMCTL_OLDEST_CUDA)
    set(${problem} "${compiler} is of CUDA ${CMAKE_MATCH_1}, and the kernels need ${SHMEMCTL_OLDEST_CUDA} or newer"
        PARENT_SCOPE)
  endif()
endfunction()

if(NOT SHMEMCTL_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  # What a release is compiled for: code of compute capability 8.0 (8.6 and 8.9 run it) and 9.0, and
  # PTX of 9.0, which the driver compiles for newer ones.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
  endif()
  set(candidate ${CMAKE_CUDA_COMPILER})
  if(NOT candidate)
    find_program(SHMEMCTL_NVCC nvcc HINTS ENV CUDACXX)
    mark_as_advanced(SHMEMCTL_NVCC)
    set(candidate ${SHMEMCTL_NVCC})
  endif()
  set(problem "")
  if(candidate)
    shmemctl_cuda_problem(${candidate} problem)
  endif()
  if(NOT problem)
    check_language(CUDA)
    if(NOT CMAKE_CUDA_COMPILER)
      set(problem "no CUDA compiler was found")
    endif()
  endif()
  if(NOT problem)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    # A third to a quarter of the size. Drivers that run CUDA 13's code read it; 12's need not.
    if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      string(APPEND CMAKE_CUDA_FLAGS " --compress-mode=size")
    endif()
    set(SHMEMCTL_HAVE_CUDA 1)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" SHMEMCTL_CUDA_VERSION "${CMAKE_CUDA_COMPILER_VERSION}")
  elseif(SHMEMCTL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SHMEMCTL_CUDA=ON, but ${problem}: install the CUDA toolkit "
                        "(${SHMEMCTL_OLDEST_CUDA} or newer), or set CMAKE_CUDA_COMPILER, or use "
                        "SHMEMCTL_CUDA=AUTO")
  else()
    message(STATUS "CUDA is left out: ${problem}")
  endif()
endif()
message(STATUS "CUDA: ${SHMEMCTL_CUDA_VERSION}")
