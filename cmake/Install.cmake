include(GNUInstallDirs)
install(TARGETS shmemctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY reports/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/schema)
install(DIRECTORY reports/grafana/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/grafana)
install(DIRECTORY scripts/ci/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl/ci
        USE_SOURCE_PERMISSIONS)
install(FILES src/topo/hotspots/nic_thresholds.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/shmemctl)
install(FILES ${CMAKE_BINARY_DIR}/libshmemctl.a ${CMAKE_BINARY_DIR}/libshmemctl_all.a
        DESTINATION ${CMAKE_INSTALL_LIBDIR})
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
