# The distribution's packages. hwloc, expat, zstd and the C++ runtime are linked statically, so that the
# binary starts on a node that has none of them; header-only libraries need no linking.
find_package(nlohmann_json 3.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

find_path(HWLOC_INCLUDE_DIR hwloc.h REQUIRED)
find_library(HWLOC_STATIC NAMES libhwloc.a REQUIRED)
find_path(EXPAT_INCLUDE_DIR expat.h REQUIRED)
find_library(EXPAT_STATIC NAMES libexpat.a REQUIRED)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_STATIC NAMES libzstd.a REQUIRED)
# In build-packages scripts/packages.sh unpacks it, because its package drags in Qt and databases.
find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp
          HINTS ${CMAKE_SOURCE_DIR}/build-packages/usr/include REQUIRED)
# Distributions of statistics (Boost.Math, headers only).
find_path(BOOST_MATH_INCLUDE_DIR boost/math/distributions/students_t.hpp REQUIRED)

# UCX's library is opened at run time; without its headers the transport says that it is absent.
find_path(UCX_INCLUDE_DIR ucp/api/ucp.h)
if(NOT UCX_INCLUDE_DIR)
  message(STATUS "UCX: no headers (package libucx-dev), so the transport ucx is left out")
endif()

add_library(shmemctl_dependencies INTERFACE)
target_include_directories(shmemctl_dependencies SYSTEM INTERFACE
  ${HWLOC_INCLUDE_DIR} ${EXPAT_INCLUDE_DIR} ${ZSTD_INCLUDE_DIR} ${VALIJSON_INCLUDE_DIR} ${BOOST_MATH_INCLUDE_DIR}
  $<$<BOOL:${UCX_INCLUDE_DIR}>:${UCX_INCLUDE_DIR}>)
target_link_libraries(shmemctl_dependencies INTERFACE
  nlohmann_json::nlohmann_json CLI11::CLI11
  ${HWLOC_STATIC} ${EXPAT_STATIC} ${ZSTD_STATIC} Threads::Threads ${CMAKE_DL_LIBS} m)

# src/base/fmt_library.cpp compiles fmt's functions once, by names that are version 9's.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  get_target_property(fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(shmemctl_dependencies SYSTEM INTERFACE ${fmt_include})
else()
  target_link_libraries(shmemctl_dependencies INTERFACE fmt::fmt-header-only)
endif()

# libstdc++ is linked statically, except under a sanitizer, whose runtime must see it.
if(NOT SHMEMCTL_SANITIZE)
  target_link_options(shmemctl_dependencies INTERFACE -static-libstdc++ -static-libgcc)
endif()
