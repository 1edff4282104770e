include(GNUInstallDirs)
set(merge_words "")
foreach(word IN LISTS merge_arguments)
  string(APPEND merge_words " \"${word}\"")
endforeach()
# Who has built the binary alone (scripts/run.sh) has all that the library is merged from: it is
# merged now, as it is where the core is newer than it.
install(CODE "
set(core \"$<TARGET_FILE:shmemctl_core>\")
set(merged \"${CMAKE_BINARY_DIR}/libshmemctl_all.a\")
if(NOT EXISTS \"\${core}\")
  message(FATAL_ERROR \"Nothing has been built in ${CMAKE_BINARY_DIR}: run cmake --build ${CMAKE_BINARY_DIR} first\")
endif()
if(NOT EXISTS \"\${merged}\" OR \"\${core}\" IS_NEWER_THAN \"\${merged}\")
  message(STATUS \"Merging \${merged}\")
  execute_process(COMMAND \"${CMAKE_COMMAND}\" ${merge_words} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR \"\${merged} cannot be made, so nothing was installed\")
  endif()
endif()")
install(TARGETS shmemctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_BINARY_DIR}/libshmemctl.a ${CMAKE_BINARY_DIR}/libshmemctl_all.a
        DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY reports/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/schema)
install(DIRECTORY reports/grafana/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/grafana)
install(DIRECTORY scripts/ci/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/ci
        USE_SOURCE_PERMISSIONS)
install(FILES src/hotspots/nic_thresholds.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl)
install(DIRECTORY src/shmem/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(header ${SHMEMCTL_DEVICE_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${CMAKE_BINARY_DIR}/include/shmemctl/device/${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shmemctl/device/${folder})
endforeach()

# For users: pkg-config, and CMake's find_package(shmemctl). Both find the rest from where they lie.
file(RELATIVE_PATH path_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" path_to_prefix "${path_to_prefix}")
foreach(file shmemctl.pc shmemctlConfig.cmake)
  configure_file(cmake/${file}.in ${CMAKE_BINARY_DIR}/generated/${file} @ONLY)
endforeach()
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/shmemctlConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/shmemctl.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_BINARY_DIR}/generated/shmemctlConfig.cmake
        ${CMAKE_BINARY_DIR}/generated/shmemctlConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/shmemctl)
