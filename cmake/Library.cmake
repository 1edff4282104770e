# The library for OpenSHMEM programs: libshmemctl.a and include/ in the build folder, so that
#   cc prog.c -Ibuild/include -Lbuild -lshmemctl
# is all that a program needs (nvcc for one with kernels). The core and the static libraries that it links are merged into
# libshmemctl_all.a; libshmemctl.a is a linker script that adds the system's libraries to it.
set(shmem_include ${CMAKE_SOURCE_DIR}/src/runtime/shmem/include)
file(GLOB_RECURSE shmem_headers RELATIVE ${shmem_include} CONFIGURE_DEPENDS ${shmem_include}/*.h
     ${shmem_include}/*.cuh)
foreach(header ${shmem_headers})
  configure_file(${shmem_include}/${header} ${CMAKE_BINARY_DIR}/include/${header} COPYONLY)
endforeach()
include(cmake/DeviceHeaders.cmake)

set(merged ${CMAKE_BINARY_DIR}/libshmemctl_all.a)
# Kernels are part of the core, and a program that is linked by `cc` has no CUDA runtime of its own.
set(add_cuda_runtime)
if(SHMEMCTL_HAVE_CUDA)
  set(add_cuda_runtime "addlib $<TARGET_FILE:CUDA::cudart_static>\n")
endif()
# The archive that is added last is the first that linkers search.
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/merge.mri CONTENT
"create ${merged}
addlib $<TARGET_FILE:shmemctl_core>
addlib $<TARGET_FILE:shmemctl_udev_absent>
addlib ${HWLOC_STATIC}
addlib ${EXPAT_STATIC}
addlib ${ZSTD_STATIC}
${add_cuda_runtime}addlib $<TARGET_FILE:shmemctl_string_members>
save
end
")
# Its debug information would be five sixths of every program: 25 of 30 MB. Debug builds and those
# with sanitizers keep it.
set(merge_arguments -DAR=${CMAKE_AR} -DMRI=${CMAKE_BINARY_DIR}/generated/merge.mri -DMERGED=${merged})
if(CMAKE_OBJCOPY AND NOT SHMEMCTL_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  list(APPEND merge_arguments -DOBJCOPY=${CMAKE_OBJCOPY})
endif()
list(APPEND merge_arguments -P ${CMAKE_SOURCE_DIR}/cmake/MergeLibrary.cmake)
add_custom_command(OUTPUT ${merged}
  COMMAND ${CMAKE_COMMAND} ${merge_arguments}
  DEPENDS shmemctl_core shmemctl_udev_absent shmemctl_string_members ${CMAKE_BINARY_DIR}/generated/merge.mri
          ${CMAKE_SOURCE_DIR}/cmake/MergeLibrary.cmake
  COMMENT "Merging libshmemctl_all.a" VERBATIM)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/libshmemctl.a CONTENT
"/* GNU ld script: what an OpenSHMEM program is linked with. */
GROUP ( libshmemctl_all.a )
INPUT ( -lstdc++ -lm -lpthread -ldl -lrt )
")
add_custom_target(shmemctl_library ALL DEPENDS ${merged})
