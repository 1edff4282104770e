# `scripts/build.sh tidy tidy`: clang-tidy over our own sources, by .clang-tidy; clean or red. In
# the preset of that name, because a precompiled header of GCC's is none for clang.
find_program(RUN_CLANG_TIDY NAMES run-clang-tidy run-clang-tidy-14 run-clang-tidy-18)
find_program(CLANG_TIDY NAMES clang-tidy clang-tidy-14 clang-tidy-18)
if(RUN_CLANG_TIDY AND CLANG_TIDY)
  # Headers of kernels are read as these tests compile them, for threads of the host. What uses PTX
  # is not among them: only nvcc compiles it.
  set(kernel_tests ${CMAKE_SOURCE_DIR}/tests/unit/kernels/device_plan)
  set(tidy_kernels)
  foreach(name bench_kernels moe operations_on_host)
    list(APPEND tidy_kernels ${kernel_tests}/${name}_test.cpp)
  endforeach()
  add_custom_target(tidy
    COMMAND ${RUN_CLANG_TIDY} -quiet -p ${CMAKE_BINARY_DIR} "${CMAKE_SOURCE_DIR}/(src|cli|reports|transports)/.*\\.cpp$$"
    COMMAND ${CLANG_TIDY} -quiet "-header-filter=${CMAKE_SOURCE_DIR}/kernels/.*\\.cuh$$" ${tidy_kernels} --
            -std=c++20 -DSHMEMCTL_KERNELS_ON_HOST -I${CMAKE_SOURCE_DIR}/tests/support/device_on_host
            -I${CMAKE_SOURCE_DIR} -I${CMAKE_BINARY_DIR}/generated -Wno-unknown-pragmas
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMENT "clang-tidy" VERBATIM)
  add_dependencies(tidy shmemctl_revision)
endif()
