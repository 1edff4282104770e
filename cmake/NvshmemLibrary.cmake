# The library for programs that were written for NVSHMEM (docs/explanation/nvshmem_programs.md):
# nvshmem-compat/ in the build folder, a tree of its own, so that nobody gets it for NVSHMEM by accident.
#   libnvshmem_host.a    for host code: a linker script over libnvshmem_compat.a (these sources) and
#                        libshmemctl_all.a
#   libnvshmem_host.so   the same as a shared library, which extensions of one process share
#   libnvshmem_device.a  for kernels, relocatable device code
#   libnvshmem.a         both in one archive, which device links read too
set(nvshmem_source ${CMAKE_SOURCE_DIR}/src/runtime/nvshmem)
set(nvshmem_build ${CMAKE_BINARY_DIR}/nvshmem-compat)
file(MAKE_DIRECTORY ${nvshmem_build}/include ${nvshmem_build}/lib/cmake/nvshmem)
file(GLOB_RECURSE nvshmem_headers RELATIVE ${nvshmem_source}/include CONFIGURE_DEPENDS
     ${nvshmem_source}/include/*.h ${nvshmem_source}/include/*.cuh)
foreach(header ${nvshmem_headers})
  configure_file(${nvshmem_source}/include/${header} ${nvshmem_build}/include/${header} COPYONLY)
endforeach()
# What the headers of kernels include: "shmemctl/device/...".
file(CREATE_LINK ${CMAKE_BINARY_DIR}/include/shmemctl ${nvshmem_build}/include/shmemctl SYMBOLIC)
file(CREATE_LINK ../../libshmemctl_all.a ${nvshmem_build}/lib/libshmemctl_all.a SYMBOLIC)

# launch.cpp is the device library's, too: see there.
file(GLOB nvshmem_host_sources CONFIGURE_DEPENDS ${nvshmem_source}/*.cpp ${nvshmem_source}/stream_*.cu)
add_library(shmemctl_nvshmem_objects OBJECT ${nvshmem_host_sources})
set_target_properties(shmemctl_nvshmem_objects PROPERTIES CUDA_RUNTIME_LIBRARY Static)
position_independent(shmemctl_nvshmem_objects)
target_include_directories(shmemctl_nvshmem_objects PRIVATE ${CMAKE_SOURCE_DIR})
target_include_directories(shmemctl_nvshmem_objects SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(shmemctl_nvshmem_objects PRIVATE shmemctl_core shmemctl_warnings)
add_library(shmemctl_nvshmem_host STATIC $<TARGET_OBJECTS:shmemctl_nvshmem_objects>)
set_target_properties(shmemctl_nvshmem_host PROPERTIES OUTPUT_NAME nvshmem_compat LINKER_LANGUAGE CXX
  ARCHIVE_OUTPUT_DIRECTORY ${nvshmem_build}/lib)
target_link_libraries(shmemctl_nvshmem_host PRIVATE shmemctl_core)

# The shared library: the objects, of the core what they use, and a C++ and a CUDA runtime that nobody else
# sees. Of hwloc, expat and zstd the shared ones: the static ones of distributions are for executables. It is
# not made where one is missing, nor with sanitizers, whose runtime a program must have by itself, nor in
# the portable build, which has no other libraries.
set(nvshmem_shared_needs)
foreach(name hwloc expat zstd)
  string(TOUPPER ${name}_SHARED variable)
  find_library(${variable} NAMES lib${name}.so)
  mark_as_advanced(${variable})
  list(APPEND nvshmem_shared_needs ${${variable}})
endforeach()
set(nvshmem_shared)
if(HWLOC_SHARED AND EXPAT_SHARED AND ZSTD_SHARED AND NOT SHMEMCTL_SANITIZE AND NOT SHMEMCTL_PORTABLE)
  set(nvshmem_shared ${nvshmem_build}/lib/libnvshmem_host.so)
  # A launch needs the CUDA runtime of the program's own module, so it comes from the device library.
  set(nvshmem_exports ${CMAKE_BINARY_DIR}/generated/nvshmem_host.map)
  file(CONFIGURE OUTPUT ${nvshmem_exports} CONTENT
"{
  global: nvshmem_*; nvshmemx_*; nvshmemi_*;
  local: nvshmemx_collective_launch; nvshmemx_collective_launch_query_gridsize; *;
};
" @ONLY)
  add_library(shmemctl_nvshmem_shared SHARED $<TARGET_OBJECTS:shmemctl_nvshmem_objects>)
  set_target_properties(shmemctl_nvshmem_shared PROPERTIES OUTPUT_NAME nvshmem_host LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${nvshmem_build}/lib LINK_DEPENDS "${nvshmem_exports};$<TARGET_FILE:shmemctl_core>")
  add_dependencies(shmemctl_nvshmem_shared shmemctl_core)
  target_link_options(shmemctl_nvshmem_shared PRIVATE -static-libstdc++ -static-libgcc
    LINKER:--version-script=${nvshmem_exports} LINKER:-z,defs LINKER:--as-needed LINKER:--gc-sections)
  target_link_libraries(shmemctl_nvshmem_shared PRIVATE $<TARGET_FILE:shmemctl_core> CUDA::cudart_static
                        ${nvshmem_shared_needs} Threads::Threads ${CMAKE_DL_LIBS} m rt)
endif()

# A kernel takes as many registers as the functions that it may call, and programs launch blocks of
# 1024 threads.
file(GLOB nvshmem_device_sources CONFIGURE_DEPENDS ${nvshmem_source}/device_*.cu)
add_library(shmemctl_nvshmem_device STATIC ${nvshmem_device_sources} ${nvshmem_source}/launch.cpp)
position_independent(shmemctl_nvshmem_device)
set_target_properties(shmemctl_nvshmem_device PROPERTIES OUTPUT_NAME nvshmem_device
  ARCHIVE_OUTPUT_DIRECTORY ${nvshmem_build}/lib CUDA_RUNTIME_LIBRARY Static
  CUDA_SEPARABLE_COMPILATION ON CUDA_RESOLVE_DEVICE_SYMBOLS OFF)
target_include_directories(shmemctl_nvshmem_device PRIVATE ${CMAKE_SOURCE_DIR} ${nvshmem_build}/include)
target_include_directories(shmemctl_nvshmem_device SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_options(shmemctl_nvshmem_device PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-maxrregcount=64>)

file(GENERATE OUTPUT ${nvshmem_build}/lib/libnvshmem_host.a CONTENT
"/* GNU ld script: what host code for NVSHMEM is linked with. */
GROUP ( libnvshmem_compat.a libshmemctl_all.a )
INPUT ( -lstdc++ -lm -lpthread -ldl -lrt )
")
set(nvshmem_merged ${nvshmem_build}/lib/libnvshmem.a)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/merge_nvshmem.mri CONTENT
"create ${nvshmem_merged}
addlib $<TARGET_FILE:shmemctl_nvshmem_host>
addlib $<TARGET_FILE:shmemctl_nvshmem_device>
addlib ${merged}
save
end
")
add_custom_command(OUTPUT ${nvshmem_merged}
  COMMAND ${CMAKE_COMMAND} -DAR=${CMAKE_AR} -DMRI=${CMAKE_BINARY_DIR}/generated/merge_nvshmem.mri
    -DMERGED=${nvshmem_merged} -P ${CMAKE_SOURCE_DIR}/cmake/MergeLibrary.cmake
  DEPENDS shmemctl_nvshmem_host shmemctl_nvshmem_device shmemctl_library ${merged}
          ${CMAKE_BINARY_DIR}/generated/merge_nvshmem.mri ${CMAKE_SOURCE_DIR}/cmake/MergeLibrary.cmake
  COMMENT "Merging libnvshmem.a" VERBATIM)
add_custom_target(shmemctl_nvshmem ALL DEPENDS ${nvshmem_merged})
if(nvshmem_shared)
  add_dependencies(shmemctl_nvshmem shmemctl_nvshmem_shared)
endif()

# find_package(NVSHMEM) and find_package(nvshmem), for the build folder as for what is installed.
file(STRINGS ${nvshmem_source}/include/non_abi/nvshmem_version.h lines REGEX "define NVSHMEM_VENDOR_[A-Z]+_VERSION +[0-9]+")
string(REGEX REPLACE "[^;]*VERSION +([0-9]+)" "\\1" nvshmem_version "${lines}")
string(REPLACE ";" "." nvshmem_version "${nvshmem_version}")
include(CMakePackageConfigHelpers)
foreach(name NVSHMEM nvshmem)
  configure_file(cmake/NVSHMEMConfig.cmake.in ${nvshmem_build}/lib/cmake/nvshmem/${name}Config.cmake @ONLY)
  write_basic_package_version_file(${nvshmem_build}/lib/cmake/nvshmem/${name}ConfigVersion.cmake
                                   VERSION ${nvshmem_version} COMPATIBILITY SameMajorVersion)
endforeach()

# Who has built the binary alone has no such library: then it is left out, with a line that says so.
set(nvshmem_device_headers "")
foreach(header ${SHMEMCTL_DEVICE_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  string(APPEND nvshmem_device_headers
    "  file(INSTALL \"${CMAKE_BINARY_DIR}/include/shmemctl/device/${header}\"\n"
    "       DESTINATION \"\${tree}/include/shmemctl/device/${folder}\")\n")
endforeach()
install(CODE "
if(EXISTS \"${nvshmem_merged}\")
  set(tree \"\${CMAKE_INSTALL_PREFIX}/nvshmem-compat\")
  file(INSTALL \"${nvshmem_source}/include/\" DESTINATION \"\${tree}/include\")
${nvshmem_device_headers}  file(INSTALL \"${nvshmem_build}/lib/\" DESTINATION \"\${tree}/lib\"
       PATTERN libshmemctl_all.a EXCLUDE)
  file(RELATIVE_PATH link_target /prefix/nvshmem-compat/lib /prefix/${CMAKE_INSTALL_LIBDIR}/libshmemctl_all.a)
  file(CREATE_LINK \"\${link_target}\" \"\$ENV{DESTDIR}\${tree}/lib/libshmemctl_all.a\" SYMBOLIC)
else()
  message(STATUS \"The library for programs of NVSHMEM is left out: build the target shmemctl_nvshmem first\")
endif()" COMPONENT development)
