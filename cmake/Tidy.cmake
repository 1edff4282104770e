# `scripts/build.sh tidy tidy`: clang-tidy over our own sources, by .clang-tidy; clean or red. In
# the preset of that name, because a precompiled header of GCC's is none for clang.
find_program(RUN_CLANG_TIDY NAMES run-clang-tidy run-clang-tidy-14 run-clang-tidy-18)
find_program(CLANG_TIDY NAMES clang-tidy clang-tidy-14 clang-tidy-18)
if(RUN_CLANG_TIDY AND CLANG_TIDY)
  # Kernels that also run on threads of the host are read as these tests compile them.
  set(kernel_tests ${CMAKE_SOURCE_DIR}/tests/unit/kernels/device_plan)
  set(tidy_kernels)
  foreach(name bench_kernels moe operations_on_host)
    list(APPEND tidy_kernels ${kernel_tests}/${name}_test.cpp)
  endforeach()
  set(tidy_kernels_filter "-header-filter=${CMAKE_SOURCE_DIR}/(kernels|src/runtime|tests)/.*\\.cuh$$")
  # And all kernels as device code of compute capability 9.0. Only nvcc reads CUDA's own cuda_runtime.h, so
  # tests/support/kernels_for_tidy has another one, over the rest of CUDA's headers.
  find_path(SHMEMCTL_CUDA_HEADERS cuda_runtime_api.h HINTS /usr/local/cuda/include ENV CPATH)
  mark_as_advanced(SHMEMCTL_CUDA_HEADERS)
  set(tidy_device ${CMAKE_COMMAND} -E echo "clang-tidy: without CUDA's headers, kernels are not read as device code")
  if(SHMEMCTL_CUDA_HEADERS)
    set(for_tidy ${CMAKE_SOURCE_DIR}/tests/support/kernels_for_tidy)
    file(GLOB_RECURSE tidy_device_kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.cu
         ${CMAKE_SOURCE_DIR}/src/*.cu ${CMAKE_SOURCE_DIR}/tests/gpu/*.cu ${for_tidy}/*.cu)
    list(APPEND tidy_device_kernels ${CMAKE_SOURCE_DIR}/docs/examples/gpu_ring.cu)
    set(tidy_nvshmem ${CMAKE_SOURCE_DIR}/tests/gpu/nvshmem_names.cu ${for_tidy}/deepep_v1.cu)
    list(REMOVE_ITEM tidy_device_kernels ${tidy_nvshmem})
    set(flags -std=c++17 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -U__CUDA_ARCH__ -D__CUDA_ARCH__=900
        -Wno-builtin-macro-redefined -Wno-unknown-pragmas -Wno-unknown-cuda-version -nocudainc -nocudalib
        -D__CUDACC__ -D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__=0 -I${for_tidy} -include cuda_runtime.h
        -isystem ${SHMEMCTL_CUDA_HEADERS} -isystem ${SHMEMCTL_CUDA_HEADERS}/cccl -I${CMAKE_SOURCE_DIR}
        -I${CMAKE_SOURCE_DIR}/src/runtime/nvshmem/include -I${CMAKE_SOURCE_DIR}/src/runtime/shmem/include
        -I${CMAKE_BINARY_DIR}/include -I${CMAKE_BINARY_DIR}/generated)
    # Macros that make a family of functions have types as arguments, which parentheses would break. Products
    # of 32 bits as offsets are those of loops and of shared memory; 64 bits would take registers. All kernels
    # of a file declare the one array of dynamic shared memory.
    set(checks -checks=-bugprone-macro-parentheses,-bugprone-implicit-widening-of-multiplication-result,-bugprone-misplaced-widening-cast,-readability-redundant-declaration)
    set(tidy_device ${CLANG_TIDY} -quiet ${checks} ${tidy_kernels_filter} ${tidy_device_kernels} -- ${flags}
        COMMAND ${CLANG_TIDY} -quiet ${checks} ${tidy_kernels_filter} ${tidy_nvshmem} -- ${flags}
                -DSHMEMCTL_KERNELS_IN_TREE -DSHMEMCTL_DEVICE_LIBRARY_ELSEWHERE)
  endif()
  add_custom_target(tidy
    COMMAND ${RUN_CLANG_TIDY} -quiet -p ${CMAKE_BINARY_DIR} "${CMAKE_SOURCE_DIR}/(src|cli|reports|transports)/.*\\.cpp$$"
    COMMAND ${CLANG_TIDY} -quiet ${tidy_kernels_filter} ${tidy_kernels} --
            -std=c++20 -DSHMEMCTL_KERNELS_ON_HOST -I${CMAKE_SOURCE_DIR}/tests/support/device_on_host
            -I${CMAKE_SOURCE_DIR} -I${CMAKE_BINARY_DIR}/generated -Wno-unknown-pragmas
    COMMAND ${tidy_device}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMENT "clang-tidy" VERBATIM)
  add_dependencies(tidy shmemctl_revision)
endif()
