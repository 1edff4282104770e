# The headers of kernels for programs of others: build/include/shmemctl/device holds what
# shmem_device.cuh, on_stream.h and nvshmem_device.cuh include, and nothing else. Ours are included by
# their path from the project's root; there they are included as "shmemctl/device/...", so that one -I is enough and
# a program's own src/ and kernels/ do not meet ours.
#
# Sets SHMEMCTL_DEVICE_HEADERS: the paths from the root.
set(SHMEMCTL_DEVICE_HEADERS)
set(waiting kernels/shmem_device.cuh kernels/on_stream.h kernels/nvshmem_device.cuh)
while(waiting)
  list(POP_FRONT waiting header)
  list(APPEND SHMEMCTL_DEVICE_HEADERS ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
  file(STRINGS ${CMAKE_SOURCE_DIR}/${header} lines REGEX "^ *# *include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^ *# *include \"([^\"]+)\".*" "\\1" included "${line}")
    if(NOT included IN_LIST SHMEMCTL_DEVICE_HEADERS AND NOT included IN_LIST waiting)
      list(APPEND waiting ${included})
    endif()
  endforeach()
  file(READ ${CMAKE_SOURCE_DIR}/${header} text)
  string(REGEX REPLACE "(\n *# *include \")" "\\1shmemctl/device/" text "${text}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/include/shmemctl/device/${header}
       CONTENT "${text}" @ONLY)
endwhile()
